"""How data is written: each class has one text, by which its values are printed and read back.

In: classes with a ``TEXT``; a speller for each type of their fields. Out: ``Language``. Not done
here: words and signs (``text_reader``), what a stage consists of (its own module).

In a ``TEXT``, ``$name`` is a field, ``$name.0`` an item of one that is a tuple. ``|...|`` is a part
that is left out where its fields have their defaults; a part without a field is a flag, of which it
is the name. Everything else is written as it stands, and read whatever the space between words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.text.text_reader import Reader

Kind = TypeVar("Kind")
Starts = Mapping[str, Sequence[tuple[str, type[Any]]]]
"""What tells some classes apart: the first word of their texts, or the sign behind it where that is
any name -> what follows, and the class."""

_PIECE = re.compile(r"\$(?P<name>\w+)(?:\.(?P<item>\d))?|\|(?P<part>[^|]+)\|")
_NAMES = re.compile(r"\$(\w+)|\|\s*(\w+)\|")
_Piece = tuple[Callable[[Any], str], "Callable[[Reader, dict[str, Any]], object]"]
_Hints = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Speller:
    """How a value of a type is written: ``read`` takes what ``show`` gives, of a list one item;
    ``words``: all that it may be, where these are few."""

    show: Callable[[Any], str]
    read: Callable[[Reader], Any]
    is_list: bool = False
    words: Sequence[str] = ()


def choice(names: Mapping[Any, str]) -> Speller:
    """One of some values; ``names``: value -> word."""
    values = {word: value for value, word in names.items()}
    words = tuple(values)
    return Speller(names.__getitem__, lambda reader: values[reader.choice(words)], words=words)


def numbered(prefix: str, what: str) -> Speller:
    """A number with a prefix, in one word; ``what`` it is, with an example."""
    return Speller(lambda number: f"{prefix}{number}", lambda reader: reader.number(prefix, what))


def listed(item: Speller) -> Speller:
    """A tuple of any length, with commas between; a word or a sign stands behind it."""
    return Speller(lambda values: ", ".join(map(item.show, values)), item.read, is_list=True)


def together(items: Sequence[Speller]) -> Speller:
    """A tuple of a known length: ``(3, 2*s0)``."""

    def show(values: Sequence[Any]) -> str:
        return f"({', '.join(item.show(value) for item, value in zip(items, values, strict=True))})"

    def read(reader: Reader) -> tuple[Any, ...]:
        found: list[Any] = []
        for item in items:
            reader.expect("," if found else "(")
            found.append(item.read(reader))
        reader.expect(")")
        return tuple(found)

    return Speller(show, read)


def optional(speller: Speller) -> Speller:
    """A value or ``None``."""
    return Speller(
        lambda value: "None" if value is None else speller.show(value),
        lambda reader: None if reader.accept("None") else speller.read(reader),
    )


class Language:
    """The texts of the classes of one stage."""

    def __init__(self, spellers: Mapping[Any, Speller]) -> None:
        """``spellers``: by the type of a field, as it is annotated. Classes with a ``TEXT``, choices,
        tuples and what may be ``None`` need none."""
        self._spellers = spellers
        self._known: dict[Any, tuple[_Piece, ...]] = {}

    def show(self, value: object) -> str:
        """The text of a value."""
        return "".join([show(value) for show, _ in self._pieces(type(value))])

    def read(self, kind: type[Kind], reader: Reader) -> Kind:
        """The value of a class that comes next."""
        found: dict[str, Any] = {}
        for _, read in self._pieces(kind):
            read(reader, found)
        return kind(**found)

    def starts(self, kinds: Iterable[Any]) -> Starts:
        """What tells some classes apart."""
        found: dict[str, list[tuple[str, type[Any]]]] = {}
        for kind in kinds:
            field = _PIECE.match(kind.TEXT)
            behind = (*_words_at(kind.TEXT, field.end() if field else 0), "", "")
            first = self._speller(type_hints(kind)[field["name"]]).words if field else ()
            for word in first or behind[:1]:
                found.setdefault(word, []).append((behind[1], kind))
        return found

    def _pieces(self, kind: Any) -> tuple[_Piece, ...]:
        if kind not in self._known:
            names = {flag or name for name, flag in _NAMES.findall(kind.TEXT)}
            assert names == {field.name for field in fields(kind)}, f"not the fields: {kind.TEXT}"
            self._known[kind] = tuple(self._compiled(kind.TEXT, kind, type_hints(kind)))
        return self._known[kind]

    def _compiled(self, text: str, kind: Any, hints: _Hints) -> Iterator[_Piece]:
        """What shows and reads each literal, field and part of a text."""
        at = 0
        for found in _PIECE.finditer(text):
            yield _literal(text[at : found.start()])
            at = found.end()
            name, item, part = found.groups()
            if part:
                yield self._part(part, kind, hints) if "$" in part else _flag(part)
            elif item:
                yield _item(name, int(item), self._speller(get_args(hints[name])[int(item)]))
            else:
                yield _field(name, self._speller(hints[name]), "".join(_words_at(text, at)[:1]))
        yield _literal(text[at:])

    def _part(self, text: str, kind: Any, hints: _Hints) -> _Piece:
        """What is left out where its fields have their defaults."""
        names = [name for name, _ in _NAMES.findall(text)]
        of, default = attrgetter(*names), tuple(_defaults(kind)[name] for name in names)
        without = default if names[1:] else default[0]
        there = {each: without_none(hint) for each, hint in hints.items()}
        pieces = tuple(self._compiled(text, kind, there))
        word = _words_at(text)[0]

        def show(value: Any) -> str:
            return "" if of(value) == without else "".join([each(value) for each, _ in pieces])

        def read(reader: Reader, parsed: dict[str, Any]) -> None:
            if reader.at(word):
                for _, read in pieces:
                    read(reader, parsed)

        return show, read

    def _speller(self, hint: Any) -> Speller:
        if hint in self._spellers:
            return self._spellers[hint]
        if isinstance(hint, type) and is_dataclass(hint):
            return Speller(self.show, partial(self.read, hint))
        arguments = get_args(hint)
        if get_origin(hint) is Literal:
            return choice({word: word for word in arguments})
        if NoneType in arguments:
            return optional(self._speller(without_none(hint)))
        assert get_origin(hint) is tuple, f"no speller for {hint}"
        if arguments[-1] is Ellipsis:
            return listed(self._speller(arguments[0]))
        return together(list(map(self._speller, arguments)))


def type_hints(kind: Any) -> _Hints:
    """The types of the fields of a class as they are annotated."""
    return get_type_hints(kind, include_extras=True)


def _defaults(kind: Any) -> Mapping[str, Any]:
    return {field.name: field.default for field in fields(kind)}


def without_none(hint: Any) -> Any:
    """The type of what is there where something may be ``None``."""
    arguments = get_args(hint)
    if NoneType not in arguments:
        return hint
    found, *others = (each for each in arguments if each is not NoneType)
    for each in others:
        found = found | each
    return found


def _words_of(text: str) -> tuple[str, ...]:
    from ingot_compiler.ir.text.text_reader import words_of  # for who reads or prints alone

    return words_of(text)


def _words_at(text: str, at: int = 0) -> tuple[str, ...]:
    """The words up to the next field or part."""
    return _words_of(re.split(r"[$|]", text[at:], maxsplit=1)[0])


def _literal(text: str) -> _Piece:
    words = _words_of(text)
    return lambda _: text, lambda reader, _: reader.expect(*words)


def _flag(text: str) -> _Piece:
    (name,) = _words_of(text)
    has = attrgetter(name)
    return (
        lambda value: text if has(value) else "",
        lambda reader, found: found.update({name: reader.accept(name)}),
    )


def _item(name: str, number: int, speller: Speller) -> _Piece:
    def read(reader: Reader, parsed: dict[str, Any]) -> None:
        parsed[name] = (*parsed.get(name, ()), speller.read(reader))

    return lambda value: speller.show(getattr(value, name)[number]), read


def _field(name: str, speller: Speller, closing: str) -> _Piece:
    of, show, read = attrgetter(name), speller.show, speller.read

    def read_list(reader: Reader, parsed: dict[str, Any]) -> None:
        parsed[name] = reader.until(closing, read)

    def read_one(reader: Reader, parsed: dict[str, Any]) -> None:
        parsed[name] = read(reader)

    return lambda value: show(of(value)), read_list if speller.is_list else read_one
