"""The parts of statements and values: everything inside, the symbols that it uses, the names that
it binds.

In: statements, values, tuples of them. Out: their parts, names. Not done here: other ones in their
place (``substitute_indices``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from operator import attrgetter
from types import NoneType
from typing import Any, cast, get_args, get_origin

from ingot_compiler.ir.dims import Sum, symbols_of
from ingot_compiler.ir.text.spelling import type_hints, without_none
from ingot_compiler.lowering.loops.loop_values import Variable
from ingot_compiler.lowering.loops.program import Statement


def nested(item: object) -> Iterator[object]:
    """Everything inside of nested tuples and dataclasses but numbers and strings, each object once
    and before what it is made of."""
    waiting, met = [item], set[int]()
    take, meet = waiting.pop, met.add
    while waiting:
        item = take()
        kind: type = type(item)
        parts = _PARTS[kind]
        if parts is not None and id(item) not in met:
            meet(id(item))
            yield item
            waiting += parts(item)


def _parts(kind: type) -> Callable[[object], Sequence[object]] | None:
    """What gives the parts of an object of a type, the last one first; None for what has none and
    is of no interest."""
    if kind in (int, str, float, bool, type(None)):
        return None
    if tuple in kind.__mro__:
        return lambda item: cast("tuple[object, ...]", item)[::-1]
    names = () if kind is Sum else _field_names(kind)[::-1]
    if not names:
        return lambda _: ()
    if len(names) == 1:
        return lambda item: (getattr(item, names[0]),)
    return attrgetter(*names)


class _PartsOfTypes(dict[type, "Callable[[object], Sequence[object]] | None"]):
    """Parts by type, each made when its type is first met: a dictionary is read for each part of a
    kernel."""

    def __missing__(self, kind: type) -> Callable[[object], Sequence[object]] | None:
        found = self[kind] = _parts(kind)
        return found


_PARTS = _PartsOfTypes()


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, none of anything else."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def used_symbols(items: object) -> Iterator[str]:
    """The symbols in all sizes and indices inside nested tuples and dataclasses."""
    for item in nested(items):
        if isinstance(item, Sum):
            yield from symbols_of(item)


def free_symbols(body: tuple[Statement, ...]) -> set[str]:
    """The symbols that nothing in the body gives a value."""
    used, bound = set[str](), set[str]()
    for item in nested(body):
        kind: type = type(item)
        if isinstance(item, Sum):
            used.update(symbols_of(item))
        elif _fields_with(kind, Variable):
            bound.update(bound_by(item))
    return used - bound


def bound_names(body: tuple[Statement, ...]) -> set[str]:
    """The names that loops and ``let`` of the body give a value."""
    names: set[str] = set()
    for item in nested(body):
        kind: type = type(item)
        if _fields_with(kind, Variable):
            names.update(bound_by(item))
    return names


def bound_by(item: object) -> Iterator[str]:
    """The symbols that a statement gives a value, its body left out."""
    return of_type(item, Variable)


def of_type(item: object, wanted: Any) -> Iterator[Any]:
    """What a statement and its parts have in fields that are annotated with a type, in their order;
    its body and values left out."""
    kind: type = type(item)
    for name, hint in _fields_with(kind, wanted):
        yield from _in_field(hint, getattr(item, name), wanted)


def _in_field(hint: Any, value: Any, wanted: Any) -> Iterator[Any]:
    arguments = get_args(hint)
    if hint == wanted:
        yield value
    elif isinstance(hint, type) and is_dataclass(hint):
        yield from of_type(value, wanted)
    elif get_origin(hint) is tuple:
        hints = repeat(arguments[0]) if arguments[-1] is Ellipsis else arguments
        for inner, part in zip(hints, value, strict=False):
            yield from _in_field(inner, part, wanted)
    elif NoneType in arguments and value is not None:
        yield from _in_field(without_none(hint), value, wanted)


@cache
def _fields_with(kind: type, wanted: Any) -> tuple[tuple[str, Any], ...]:
    hints: Mapping[str, Any] = type_hints(kind) if is_dataclass(kind) else {}
    return tuple((name, hint) for name, hint in hints.items() if _has(hint, wanted))


def _has(hint: Any, wanted: Any) -> bool:
    """Whether a field may hold what is wanted."""
    if hint == wanted:
        return True
    if isinstance(hint, type) and is_dataclass(hint):
        return bool(_fields_with(hint, wanted))
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return any(_has(each, wanted) for each in arguments)
    return NoneType in arguments and _has(without_none(hint), wanted)
