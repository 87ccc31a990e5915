"""The frame that every kind puts around its loops.

In: buffers, body, extent. Out: a ``LoopProgram`` whose scalars are the symbols it uses. Not done
here: loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
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
    """Everything inside of nested tuples and dataclasses, each before what it is made of."""
    waiting = [item]
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, tuple):
            waiting += reversed(cast("tuple[object, ...]", item))
        elif not isinstance(item, Sum):
            kind: type = type(item)
            waiting += [getattr(item, name) for name in reversed(_field_names(kind))]


@cache
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
        if isinstance(item, (For, Reduce)):
            names.add(item.variable)
        elif isinstance(item, Filter):
            names |= {item.name, item.variable}
        elif isinstance(item, LetIndex):
            names.add(item.name)
        elif isinstance(item, Transpose):
            names |= {item.row, item.column}
        elif is_dataclass(item) and hasattr(item, "accumulator"):
            names |= {
                name for field in fields(item) if isinstance(name := getattr(item, field.name), str)
            }
            names |= {tap for tap, _ in getattr(item, "taps", ())}
    return names
