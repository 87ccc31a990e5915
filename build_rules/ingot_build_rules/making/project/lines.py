"""The line on which each key, table and list element of a TOML text stands; ``tomllib`` does not
report it.

In: a text that ``tomllib`` accepts. Out: path -> line, 1-based. Not done here: values, errors of
syntax.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str, ...]
"""Keys from the top of the file; an element of a list by its position, as a text."""

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_SCALAR = re.compile(
    r'''"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}'''
    r"""|'''(?:[^']|'{1,2}(?!'))*'{3,5}"""
    r"""|"(?:[^"\\]|\\.)*"|'[^']*'"""
    r"""|[^\[\]{},"'#\s][^\[\]{},#\n]*"""
)


def find_lines(text: str) -> dict[Path, int]:
    """Return the first line of every path; what a dotted key or header implies has its line."""
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.lines


class _Scanner:
    """Reads a text once, from left to right; ``at`` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text = text
        self._at = 0
        self._line, self._counted = 1, 0

    def scan(self) -> None:
        table: Path = ()
        while self._peek():
            if self._peek() == "[":
                opening = "[[" if self._text.startswith("[[", self._at) else "["
                self._at += len(opening)
                table = self._key(())
                self._at += len(opening)
            else:
                self._pair(table)

    def _pair(self, base: Path) -> None:
        path = self._key(base)
        assert self._peek() == "=", f"no value at {self._at}"
        self._at += 1
        self._value(path)

    def _key(self, base: Path) -> Path:
        """Read a dotted key, and note the line of each of its parts."""
        self._take(_BLANK)
        path = base
        line = self._here()
        while True:
            path = (*path, _plain(self._take(_PART)))
            self.lines.setdefault(path, line)
            if not self._take(_DOT, needed=False):
                break
        self._take(_BLANK)
        return path

    def _value(self, path: Path) -> None:
        opening = self._peek()
        if opening not in ("[", "{"):
            self._take(_SCALAR)
            return
        self._at += 1
        count = 0
        while self._peek() not in ("]", "}"):
            if opening == "{":
                self._pair(path)
            else:
                self.lines[(*path, str(count))] = self._here()
                self._value((*path, str(count)))
            count += 1
            if self._peek() == ",":
                self._at += 1
        self._at += 1

    def _peek(self) -> str:
        """Return the next character that is no space or comment; empty at the end."""
        self._take(_SPACE)
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str], *, needed: bool = True) -> str:
        found = pattern.match(self._text, self._at)
        assert found or not needed, f"no {pattern.pattern} at {self._at}"
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line


def _plain(part: str) -> str:
    """Return what a key's part says, without quotes and escapes."""
    if part[0] not in "\"'":
        return part
    return next(iter(tomllib.loads(f"{part} = 0"))) if "\\" in part else part[1:-1]
