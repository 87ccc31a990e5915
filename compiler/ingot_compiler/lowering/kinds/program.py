"""The frame that every kind puts around its loops.

In: buffers, body, extent. Out: a ``LoopProgram`` whose scalars are the symbols it uses. Not done
here: loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import cast

from ingot_compiler.ir.dims import Dim, Sum, dim_floordiv, symbols_of
from ingot_compiler.ir.typical import typical
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.loops import (
    Filter,
    For,
    LetIndex,
    LoopProgram,
    Reduce,
    Statement,
    Transpose,
)

INDEX = "p"
UNIT_WORK = 16384  # elementary operations that are worth waking a thread for: some microseconds


def finish_program(
    buffers: GroupBuffers,
    body: Sequence[Statement],
    extent: Dim,
    grain: int,
    scratch_bytes: Dim = 0,
) -> LoopProgram:
    """Build the program; every symbol that no loop binds becomes a scalar argument."""
    free = set(symbols_of(extent)) | set(symbols_of(scratch_bytes)) | set(used_symbols(tuple(body)))
    scalars = tuple(sorted(free - bound_names(tuple(body)) - {INDEX}))
    return LoopProgram(
        tuple(buffers.buffers), scalars, INDEX, extent, grain, tuple(body), scratch_bytes
    )


def grain_for(work_per_unit: Dim) -> int:
    """Units per thread that make waking it worth while."""
    size = dim_floordiv(UNIT_WORK, max(1, typical(work_per_unit)))
    assert isinstance(size, int)
    return max(1, size)


def nested(item: object) -> Iterator[object]:
    """Everything inside of nested tuples and dataclasses but numbers and strings, each object once
    and before what it is made of."""
    waiting, met = [item], set[int]()
    while waiting:
        item = waiting.pop()
        if type(item) in _LEAVES or id(item) in met:
            continue
        met.add(id(item))
        yield item
        kind: type = type(item)
        waiting += _parts(kind)(item)


_LEAVES = frozenset((int, str, float, bool, type(None)))


@cache
def _parts(kind: type) -> Callable[[object], Sequence[object]]:
    """What gives the parts of an object of a type, the last one first."""
    if tuple in kind.__mro__:
        return lambda item: cast("tuple[object, ...]", item)[::-1]
    names = () if kind is Sum else _field_names(kind)[::-1]
    if not names:
        return lambda _: ()
    if len(names) == 1:
        return lambda item: (getattr(item, names[0]),)
    return attrgetter(*names)


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, none of anything else."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def used_symbols(items: object) -> Iterator[str]:
    """The symbols in all sizes and indices inside nested tuples and dataclasses."""
    for item in nested(items):
        if isinstance(item, Sum):
            yield from symbols_of(item)


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
