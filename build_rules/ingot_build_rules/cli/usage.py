"""Arguments of the command line, with errors in four parts and suggestions for misspelled names.

In: argument texts. Out: parsed values. Not done here: verbs, rendering of errors.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn, TypeVar

from ingot_compiler.ir.errors import UserError

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kmgt]?)(i?)b?", re.ASCII | re.IGNORECASE)
Value = TypeVar("Value")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Parser(argparse.ArgumentParser):
    """An argument parser that raises ``UserError`` instead of printing and leaving."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog, description=description, allow_abbrev=False, exit_on_error=False
        )
        self._endings: dict[str, str] = {}

    def add_optional_file(self, option: str, ending: str, **settings: str) -> None:
        """Declare an option whose file may be left out: it takes the next word only if that has the
        ending.

        Its value is None where the option is not given, empty where the file is left out.
        """
        self._endings[option] = ending
        self.add_argument(option, nargs="?", const="", **settings)  # type: ignore[arg-type]

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse all of ``arguments``.

        Raises:
            UserError: an unknown option (with a suggestion), a missing or a malformed value.
        """
        try:
            found, rest = self.parse_known_args([*self._joined(arguments)])
        except argparse.ArgumentError as error:
            if error.argument_name is None:
                self.error(error.message)
            raise self._wrong(f"wrong value of {error.argument_name}", error.message) from None
        if rest:
            raise self._unexpected(rest[0])
        return found

    def _joined(self, arguments: Sequence[str]) -> Iterator[str]:
        """Close every optional file's option off from a word that is not for it."""
        for word, after in zip(arguments, [*arguments[1:], ""], strict=False):
            ending = self._endings.get(word)
            yield word if ending is None or after.endswith(ending) else f"{word}="

    def error(self, message: str) -> NoReturn:
        """Refuse what argparse finds wrong with no argument in particular."""
        raise self._wrong("wrong arguments", message)

    def _wrong(self, what: str, why: str) -> UserError:
        return UserError(what, where=f"command {self.prog}", why=why, do=f"see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is none of an option's choices, with a suggestion (argparse calls
        this for each value)."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        close = difflib.get_close_matches(str(value), choices, n=1)
        raise UserError(
            f"wrong value of {'/'.join(action.option_strings) or action.dest}",
            where=f"command {self.prog}",
            why=f"expected one of {', '.join(choices)}, got {value!r}",
            do=f"did you mean {close[0]!r}?" if close else f"see {self.prog} --help",
        )

    def _unexpected(self, text: str) -> UserError:
        if not text.startswith("-"):
            return UserError(
                f"unexpected argument {text!r}",
                where=f"command {self.prog}",
                why="every argument that it takes is given already",
                do=f"see {self.prog} --help",
            )
        option = text.split("=", 1)[0]
        known = [name for action in self._actions for name in action.option_strings]
        long_names = sorted(name for name in known if name.startswith("--"))
        close = difflib.get_close_matches(option, known, n=1)
        return UserError(
            f"unknown option {option!r}",
            where=f"command {self.prog}",
            why=f"expected one of {', '.join(long_names)}",
            do=f"did you mean {close[0]!r}?" if close else f"see {self.prog} --help",
        )


def pair(text: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``; the last ``=`` counts, since node names may contain one."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def device(text: str) -> tuple[str, str]:
    """Read ``NAME=KIND...``; the first ``=`` counts, since what follows has its own."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=KIND, got {text!r}")
    return name, value


def shape(text: str) -> tuple[str, str]:
    """Read ``NAME=1x3x224x224``, ``NAME=?x1..8``; ``NAME=scalar`` is rank 0."""
    from ingot_compiler.ir.given_shape import shape_text

    name, value = pair(text)
    try:
        return name, shape_text(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    """Read a whole number above 0."""
    if not (text.isdecimal() and text.isascii()) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Read a duration above 0 in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return value


def size_bytes(text: str) -> int:
    """Read a size: ``5GB``, ``500M``, ``1.5GiB``, ``0``."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise argparse.ArgumentTypeError(
            f"expected a size such as 5GB, 500MB or 2GiB, got {text!r}"
        )
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()])


def profiles(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Make profiles of the pairs of ``--shape``: the second shape of an input begins another."""
    found: list[dict[str, str]] = []
    for name, value in pairs:
        if not found or name in found[-1]:
            found.append({})
        found[-1][name] = value
    return found


def unique(pairs: Sequence[tuple[str, Value]], option: str) -> dict[str, Value]:
    """Make a table of the pairs of an option.

    Raises:
        UserError: a name twice.
    """
    table: dict[str, Value] = {}
    for name, value in pairs:
        if name in table:
            what, why = (
                f"{name!r} is given twice",
                f"expected one value, got {table[name]!r} and {value!r}",
            )
            raise UserError(what, f"option {option}", why, "leave one of them out")
        table[name] = value
    return table
