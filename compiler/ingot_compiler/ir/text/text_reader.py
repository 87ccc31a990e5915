"""Reads the text of a stage, token by token; says line and column of what does not fit.

In: text; ``#`` starts a comment that ends with its line. Out: tokens to the parser of a stage, or
``ModelError``. Not done here: what the tokens mean (``read_terms``, and one parser per stage).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeVar

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.problem import Path, Problem
from ingot_runtime.option_ref import OptionRef

Kind = Literal["NAME", "VALUE", "FLOAT", "INTEGER", "STRING", "SIGN", "OTHER", "END"]
Item = TypeVar("Item")
Word = TypeVar("Word", bound=str)

_TOKEN = re.compile(
    r"""(?:[ \t\r\n]++|\#[^\n]*+)*+  # nothing of it is ever given back
    (?:(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<VALUE>%[A-Za-z0-9_]+)
    |(?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<INTEGER>[0-9]+)
    |(?P<STRING>"(?:\\.|[^"\\\n])*")
    |(?P<SIGN>->|<=|==|[][(){}<>=:;,+*@?.-])
    |(?P<END>\Z)
    |(?P<OTHER>.))""",
    re.VERBOSE,
)
_DIGIT_COUNT_MAX = 20  # of every u64
_NUMBER_DIGIT_COUNT_MAX = 9  # of values, buffers, positions
_DEPTH_MAX = 150  # a few calls of Python each


class Token(NamedTuple):
    """One word of the text, and where it starts (characters from the beginning). A tuple: large
    networks have a million."""

    kind: Kind
    text: str
    start: int

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end of the text"


class Reader:
    """The tokens of one text, and which of them comes next."""

    def __init__(self, stage: str, text: str, compare_with: str = "") -> None:
        """``stage`` is what errors call the whole; ``compare_with``: what is right, where that is
        not what ``--to`` prints of the stage."""
        self._stage = stage
        self._right = (
            (compare_with,) if compare_with else ("the output of ", OptionRef("to", stage))
        )
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0
        self.path: Path = ()
        """The part that is being read."""
        self.places: dict[Path, Token] = {}
        """Where each part begins."""

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    def ahead(self, count: int = 1) -> str:
        """Text of the token ``count`` behind the next one, "" at the end."""
        return self._tokens[min(self._next + count, len(self._tokens) - 1)].text

    def take(self) -> Token:
        """The next token, which is then behind us."""
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def at(self, text: str) -> bool:
        """Whether the next token is the word or sign ``text``."""
        return self._tokens[self._next].text == text

    def accept(self, text: str) -> bool:
        """Take the next token if it is ``text``."""
        if self._tokens[self._next].text != text:
            return False
        self._next += 1
        return True

    def expect(self, *texts: str) -> Token:
        """Take these words and signs, one after the other; the first of them."""
        first = self.token
        for text in texts:
            if not self.accept(text):
                raise self.fail(f"expected {json.dumps(text)}, got {self.token}")
        return first

    def end(self) -> None:
        """Nothing follows."""
        if self.token.kind != "END":
            raise self.fail(f"expected the end of the text, got {self.token}")

    def name(self, what: str = "a name") -> str:
        """A word."""
        return self._of("NAME", what).text

    def choice(self, words: Sequence[Word]) -> Word:
        """One of some words."""
        for word in words:
            if self.accept(word):
                return word
        raise self.fail(f"expected one of {' '.join(words)}, got {self.token}")

    def integer(self) -> int:
        """An integer, perhaps with a minus."""
        sign = -1 if self.accept("-") else 1
        token = self._of("INTEGER", "an integer")
        if len(token.text) > _DIGIT_COUNT_MAX:
            raise self.fail(
                f"expected at most {_DIGIT_COUNT_MAX} digits, got {len(token.text)}", token
            )
        return sign * int(token.text)

    def value(self) -> int:
        """The number in ``%12``."""
        return self.number("%", "a value (%0)", "VALUE")

    def buffer(self) -> int:
        """The number in ``b12``."""
        return self.number("b", "a buffer (b0)")

    def number(self, prefix: str, what: str, kind: Kind = "NAME") -> int:
        """The number behind a prefix, in one word."""
        token = self._of(kind, what)
        digits = token.text.removeprefix(prefix)
        if not digits.isdecimal() or digits == token.text or len(digits) > _NUMBER_DIGIT_COUNT_MAX:
            raise self.fail(f"expected {what}, got {token}", token)
        return int(digits)

    def string(self) -> str:
        """A text in quotes, with JSON escapes."""
        token = self._of("STRING", "a string")
        try:
            return str(json.loads(token.text))
        except ValueError as error:
            raise self.fail(
                f"expected a string with JSON escapes, got {token.text} ({error})", token
            ) from None

    def items(self, read: Callable[[], Item], closing: str) -> tuple[Item, ...]:
        """What ``read`` reads, with commas between, up to ``closing``, which is taken, too."""
        found = self.until(closing, lambda _: read())
        self.expect(closing)
        return found

    def until(self, closing: str, read: Callable[[Reader], Item]) -> tuple[Item, ...]:
        """What ``read`` reads, with commas between, up to ``closing``, which is not taken."""
        found: list[Item] = []
        while not self.at(closing):
            if found and not self.accept(","):
                raise self.fail(f'expected "," or {json.dumps(closing)}, got {self.token}')
            found.append(read(self))
        return tuple(found)

    def listed(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """At least one of what ``read`` reads, with commas between."""
        found = [read()]
        while self.accept(","):
            found.append(read())
        return tuple(found)

    @contextmanager
    def nested(self) -> Generator[None]:
        """One level deeper; what is nested too deeply is refused."""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self.fail(f"expected at most {_DEPTH_MAX} levels inside one another, got more")
        yield
        self._depth -= 1

    def enter(self, number: int) -> None:
        """What comes next is part ``number`` of that in which it stands."""
        self.path = (*self.path, number)
        self.places[self.path] = self.token

    def leave(self) -> None:
        """The part has been read."""
        self.path = self.path[:-1]

    def place(self, token: Token) -> tuple[int, int]:
        """Line and column of a token, from 1."""
        line_start = self._text.rfind("\n", 0, token.start) + 1
        return self._text.count("\n", 0, token.start) + 1, token.start - line_start + 1

    def fail(self, why: str, token: Token | None = None) -> ModelError:
        """The error to raise for a token (the next one)."""
        line, column = self.place(token or self.token)
        shown = self._text.split("\n")[line - 1].strip()
        return ModelError(
            f"cannot read the {self._stage}",
            f"line {line}, column {column}: {shown}",
            why,
            ("compare with ", *self._right),
        )

    def check(self, problems: Iterable[Problem], places: Mapping[Path, Token]) -> None:
        """Refuse the first of some problems, at the token where its part of the text begins."""
        for problem in problems:
            path = problem.path
            while path and path not in places:
                path = path[:-1]
            raise self.fail(problem.why, places.get(path, self._tokens[0]))

    def _of(self, kind: Kind, what: str) -> Token:
        if self.token.kind != kind:
            raise self.fail(f"expected {what}, got {self.token}")
        return self.take()


def words_of(text: str) -> tuple[str, ...]:
    """The words and signs of a text."""
    return tuple(token.text for token in _tokens(text))[:-1]


def _tokens(text: str) -> Iterator[Token]:
    end = 0
    for found in _TOKEN.finditer(text):
        kind: Kind = found.lastgroup  # type: ignore[assignment]  # the names of the groups
        if kind == "END":
            break
        start, end = found.span(kind)
        yield Token(kind, found[kind], start)
    yield Token("END", "", end)
