"""``select_least``: a handful of least keys of each row, by a list that is kept sorted.

In: a group of one ``argsort`` of few results; workspace for their keys. Out: its loop program:
units are rows. Not done here: more results (``select_candidates``).

Of most blocks of keys, none is below the greatest of the list: one look at a block, in lanes, is
all that it costs.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.lines import line_count, load_of_line
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import (
    For,
    If,
    Let,
    LoopProgram,
    Reduce,
    Statement,
    Store,
)
from ingot_runtime.lazy_dataclass import dataclass

LISTED_MAX = 6
"""The most results: a key that is inserted is compared with each of them."""
_BLOCK = 32


@dataclass(frozen=True, slots=True)
class _List:
    """The sorted list of a row: keys in one buffer, positions in another, both [rows, count]."""

    keys: int
    positions: int
    dtype: DType
    count: int

    def place(self, index: Dim) -> Dim:
        """Where an entry lies in both."""
        return dim_mul(symbol(INDEX), self.count) + index

    def key(self, index: Dim) -> Load:
        """The key of an entry."""
        return Load(self.keys, self.place(index))

    def insert(self, position: Dim, length: Dim) -> tuple[Statement, ...]:
        """Put ``Local("key")`` behind the entries, of the first ``length``, that are not above it;
        the last one is lost. Entries above it take the place of the one before them, the first of
        them the key."""
        key, found = Local("key", self.dtype), Local("found", "i64")
        statements: list[Statement] = [Let("found", FromIndex(position, "i64"))]
        before: tuple[Local | Apply, Local | Apply] = key, found
        for t in range(self.count):
            own, place = Local(f"key{t}", self.dtype), Local(f"found{t}", "i64")
            is_above: Value = Apply("less", (key, own), "bool")
            if length != self.count:  # what is behind the end is no entry
                is_above = Apply("logical_or", (Compare("less", length, t + 1), is_above), "bool")
            above = Local(f"above{t}", "bool")
            statements += (
                Let(own.name, self.key(t)),
                Let(place.name, Load(self.positions, self.place(t))),
                Let(above.name, is_above),
                Store(self.keys, self.place(t), _choose(above, before[0], own)),
                Store(self.positions, self.place(t), _choose(above, before[1], place)),
            )
            before = _choose(above, own, key), _choose(above, place, found)
        return tuple(statements)


def _choose(condition: Local, left: Local | Apply, right: Local) -> Apply:
    return Apply("select", (condition, left, right), left.dtype)


def lower_select_least(group: Group, target: KernelTarget) -> LoopProgram:
    """The first keys fill the list; others displace its last entry."""
    del target
    buffers, keys = GroupBuffers(group), group.operands[0]
    positions, own = group.results
    shape, dtype, count = keys.type.shape, keys.type.dtype, positions.type.shape[-1]
    assert isinstance(count, int)
    kept = _List(buffers.number(own), buffers.number(positions), dtype, count)

    def key_at(index: Dim) -> Value:
        return load_of_line(buffers, keys, len(shape) - 1, index)

    i = symbol("i")
    first = For("i", count, "serial", (Let("key", key_at(i)), *kept.insert(i, i)))
    rest = _blocks(kept, key_at, shape[-1])
    units = dim_mul(line_count(shape, len(shape) - 1), dim_min(count, 1))
    return finish_program(buffers, (first, rest), units, grain_for(shape[-1]))


def _blocks(kept: _List, key_at: Callable[[Dim], Value], length: Dim) -> For:
    """Over all keys but the first ``count``."""
    start, j, last = kept.count + symbol("b") * _BLOCK, symbol("j"), kept.count - 1
    extent = dim_min(_BLOCK, length - start)
    least = Reduce("least", "min", "j", extent, kept.dtype, (), key_at(start + j), lanes=True)

    def is_less(value: Value) -> Value:
        return Apply("less", (value, kept.key(last)), "bool")

    insertion = If(is_less(Local("key", kept.dtype)), kept.insert(start + j, kept.count))
    each = For("j", extent, "serial", (Let("key", key_at(start + j)), insertion))
    block = (least, If(is_less(Local("least", kept.dtype)), (each,)))
    return For("b", ceil_div(length - kept.count, _BLOCK), "serial", block)


SELECT_LEAST = Kind("select_least", one_kernel(lower_select_least))
