"""``radix_sort``: the order of each row by a radix sort from the lowest byte on, which is stable.

In: a group of one ``argsort``; workspace for counts, keys and positions. Out: its loop program:
units are rows. Not done here: few results of many keys (``select_least``).

Where not all keys are wanted, those whose part of the range says that they are beyond are left out
first. Few keys are ranked instead (``rank_sort``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import Dim, dim_mul, symbol
from ingot_compiler.ir.types import DType, TensorType, dtype_size_bytes
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.key_range import KeyRange
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.lines import line_count, load_of_line
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.rank_sort import RANKED_MAX, rank_each
from ingot_compiler.lowering.loops import (
    Apply,
    Compare,
    Constant,
    Filter,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Statement,
    Store,
    Value,
)
from ingot_runtime.lazy_dataclass import dataclass

DIGITS = 256
_ROW = symbol(INDEX)


@dataclass(frozen=True, slots=True)
class _Counts:
    """i64[rows, passes, DIGITS] in a buffer: first how often a digit occurs, then where those that
    have it end. A pass is for one byte, the last one for what is left out."""

    buffer: int
    passes: int

    def place(self, digit: Dim, number: int) -> Dim:
        """Where the count of a digit of one pass lies."""
        return dim_mul(_ROW, self.passes * DIGITS) + number * DIGITS + digit

    def at(self, digit: Dim, number: int) -> Load:
        """The count of a digit of one pass."""
        return Load(self.buffer, self.place(digit, number))

    def _add(self, digit: Dim, number: int, value: Value) -> Store:
        total = Apply("add", (self.at(digit, number), value), "i64")
        return Store(self.buffer, self.place(digit, number), total)

    def prepare(
        self, digits: Mapping[int, Value], length: Dim, key: Value
    ) -> tuple[Statement, ...]:
        """One look at all keys counts digits; ``digits``: pass -> that of ``Local("key")``."""
        d, first = symbol("d"), min(digits)
        zero = Store(self.buffer, self.place(d, first), Constant(0, "i64"))
        counted: list[Statement] = [Let("key", key)]
        for number, digit in digits.items():
            name = f"d{number}"
            counted.append(LetIndex(name, digit))
            counted.append(self._add(symbol(name), number, Constant(1, "i64")))
        ends = [
            For("d", DIGITS - 1, "serial", (self._add(d + 1, number, self.at(d, number)),))
            for number in digits
        ]
        clear = For("d", len(digits) * DIGITS, "vector", (zero,))
        return clear, For("i", length, "serial", tuple(counted)), *ends

    def take(self, number: int, dtype: DType) -> tuple[Statement, ...]:
        """Name the place ``at`` for ``Local("key")``: the last free one among its equals."""
        digit = symbol("digit")
        last = Apply("sub", (self.at(digit, number), Constant(1, "i64")), "i64")
        taken = Store(self.buffer, self.place(digit, number), FromIndex(symbol("at"), "i64"))
        return LetIndex("digit", _digit(number, dtype)), LetIndex("at", last), taken


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Keys and where they were, in a row of each of two buffers."""

    keys: int
    positions: int
    row: Dim

    def put(self, position: Value, dtype: DType) -> tuple[Statement, ...]:
        """Store ``Local("key")`` and its position ``at`` a place."""
        place = self.row + symbol("at")
        key = Store(self.keys, place, Local("key", dtype))
        return key, Store(self.positions, place, position)

    def get(self, index: Dim) -> tuple[Value, Value]:
        """A key and its position."""
        return Load(self.keys, self.row + index), Load(self.positions, self.row + index)


def _digit(byte: int, dtype: DType) -> Value:
    """A byte of ``Local("key")``."""
    key: Value = Local("key", dtype)
    shifted = Apply("shift_right", (key, Constant(8 * byte, dtype)), dtype) if byte else key
    low = Apply("bitwise_and", (shifted, Constant(DIGITS - 1, dtype)), dtype)
    return Apply("cast", (low,), "i64")


@dataclass(frozen=True, slots=True)
class _Sort:
    """What is sorted, and where."""

    counts: _Counts
    pairs: tuple[_Pairs, ...]
    key_at: Callable[[Dim], Value]
    length: Dim
    dtype: DType
    result: int
    count: Dim
    lanes: int

    def leave_out(self) -> tuple[Statement, ...]:
        """Move the keys whose part of the range does not say that they are beyond ``count`` to the
        first pair, in their order, and name their number ``length``."""
        counts, d, i = self.counts, symbol("d"), symbol("i")
        number, parts = counts.passes - 1, KeyRange(self.dtype)
        part = parts.part(Local("key", self.dtype))
        enough = Apply("less", (counts.at(d, number), FromIndex(self.count, "i64")), "bool")
        below = Apply("cast", (enough,), parts.wide)
        limit = Reduce("limit", "sum", "d", DIGITS, parts.wide, (), below, lanes=True)
        is_wanted = Apply("less_equal", (part, Local("limit", parts.wide)), "bool")
        pair, body = self.pairs[0], (Let("key", self.key_at(i)),)
        stores = (
            Store(pair.keys, pair.row, Local("key", self.dtype)),
            Store(pair.positions, pair.row, FromIndex(i, "i64")),
        )
        return (
            *parts.statements(self.key_at, self.length),
            *counts.prepare({number: Apply("cast", (part,), "i64")}, self.length, self.key_at(i)),
            limit,
            Filter("length", "i", self.length, 0, self.length, body, is_wanted, stores),
        )

    def take_all(self) -> tuple[Statement, ...]:
        """Move all keys to the first pair."""
        pair, i = self.pairs[0], symbol("i")
        stores = (
            Store(pair.keys, pair.row + i, self.key_at(i)),
            Store(pair.positions, pair.row + i, _index(i)),
        )
        return (For("i", self.length, "vector", stores),)

    def rank(self, source: _Pairs | None, length: Dim) -> tuple[Statement, ...]:
        """Few keys by comparing all pairs; ``source``: if not the keys themselves."""
        if source is None:

            def store(place: Dim, number: Dim) -> Store:
                return Store(self.result, dim_mul(_ROW, self.count) + place, _index(number))

            return (rank_each(self.key_at, length, self.dtype, store, self.lanes),)
        spare, c = self.pairs[1], symbol("c")

        def put(place: Dim, number: Dim) -> Store:
            return Store(spare.positions, spare.row + place, source.get(number)[1])

        found = Store(self.result, dim_mul(_ROW, self.count) + c, spare.get(c)[1])
        ranked = rank_each(lambda index: source.get(index)[0], length, self.dtype, put, self.lanes)
        return ranked, For("c", self.count, "vector", (found,))

    def order(self, source: _Pairs | None, length: Dim) -> tuple[Statement, ...]:
        """By ranks or by passes, as many keys as there are."""
        is_few = Compare("less_equal", length, RANKED_MAX)
        if isinstance(length, int):
            return (self.rank if length <= RANKED_MAX else self.sort)(source, length)
        is_many = Compare("less", RANKED_MAX, length)
        return If(is_few, self.rank(source, length)), If(is_many, self.sort(source, length))

    def sort(self, source: _Pairs | None, length: Dim) -> tuple[Statement, ...]:
        """All passes, from the last key on, since places are taken from the last on; ``source``: if
        not the keys themselves."""
        passes, index = self.counts.passes - 1, length - 1 - symbol("i")
        first = source.get(symbol("i"))[0] if source else self.key_at(symbol("i"))
        digits = {number: _digit(number, self.dtype) for number in range(passes)}
        body = [*self.counts.prepare(digits, length, first)]
        for number in range(passes):
            key, position = source.get(index) if source else (self.key_at(index), _index(index))
            taken = (Let("key", key), *self.counts.take(number, self.dtype))
            if number < passes - 1:
                source = next(pair for pair in self.pairs if pair != source)
                stores = source.put(position, self.dtype)
            else:
                stores = self._finish(position)
            body.append(For("i", length, "serial", (*taken, *stores)))
        return tuple(body)

    def _finish(self, position: Value) -> tuple[Statement, ...]:
        at = symbol("at")
        store = Store(self.result, dim_mul(_ROW, self.count) + at, position)
        if self.count == self.length:
            return (store,)
        return (If(Compare("less", at, self.count), (store,)),)


def _index(index: Dim) -> Value:
    return FromIndex(index, "i64")


def lower_radix_sort(group: Group, target: KernelTarget) -> LoopProgram:
    """Keys go from one workspace to another, and positions to the result at last."""
    buffers, keys = GroupBuffers(group), group.operands[0]
    result, counts, *between = group.results
    shape, dtype = keys.type.shape, keys.type.dtype
    length, count, passes = shape[-1], result.type.shape[-1], dtype_size_bytes(dtype)

    def key_at(index: Dim) -> Value:
        return load_of_line(buffers, keys, len(shape) - 1, index)

    numbers = [buffers.number(operand) for operand in between]
    row = dim_mul(_ROW, length)
    pairs = tuple(_Pairs(*pair, row) for pair in zip(numbers[::2], numbers[1::2], strict=True))
    table = _Counts(buffers.number(counts), passes + 1)
    sort = _Sort(table, pairs, key_at, length, dtype, buffers.number(result), count, target.f32_lanes)
    if count == length:
        body = sort.order(None, length)
    elif isinstance(length, int) and length <= RANKED_MAX:
        body = (*sort.take_all(), *sort.rank(pairs[0], length))
    else:
        body = (*sort.leave_out(), *sort.order(pairs[0], symbol("length")))
    units = line_count(shape, len(shape) - 1)
    return finish_program(buffers, body, units, grain_for(dim_mul(length, 4 * passes)))


def workspaces(keys: TensorType) -> list[TensorType]:
    """What the kernel needs beside keys and result: counts, and keys and positions twice."""
    counts = TensorType("i64", (*keys.shape[:-1], dtype_size_bytes(keys.dtype) + 1, DIGITS))
    return [counts, *[keys, TensorType("i64", keys.shape)] * 2]


RADIX_SORT = Kind("radix_sort", one_kernel(lower_radix_sort))
