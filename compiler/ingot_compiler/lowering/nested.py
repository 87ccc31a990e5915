"""What statements and values are made of: everything inside, the symbols that it uses, the names that
it binds.

In: statements, values, tuples of them. Out: their parts, names. Not done here: other ones in their
place (``substitute_indices``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import cast

from ingot_compiler.ir.dims import Sum, symbols_of
from ingot_compiler.lowering.loops import Filter, For, LetIndex, Reduce, Statement, Transpose


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
    """Each type's is made when it is first met; a dictionary is asked of each part of a kernel."""

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
        elif _may_bind(kind):
            bound |= _bound_by(item)
    return used - bound


def bound_names(body: tuple[Statement, ...]) -> set[str]:
    """The names that loops and ``let`` of the body give a value."""
    names: set[str] = set()
    for item in nested(body):
        kind: type = type(item)
        if _may_bind(kind):
            names |= _bound_by(item)
    return names


@cache
def _may_bind(kind: type) -> bool:
    """Whether what is of a type names something; most of a body is values."""
    binders = (For, Reduce, Filter, LetIndex, Transpose)
    return "accumulator" in _field_names(kind) or issubclass(kind, binders)


def _bound_by(item: object) -> set[str]:
    if isinstance(item, (For, Reduce)):
        return {item.variable}
    if isinstance(item, Filter):
        return {item.name, item.variable}
    if isinstance(item, LetIndex):
        return {item.name}
    if isinstance(item, Transpose):
        return {item.row, item.column}
    values = [getattr(item, name) for name in _field_names(type(item))]
    names = {value for value in values if isinstance(value, str)}
    return names | {tap for tap, _ in getattr(item, "taps", ())}
