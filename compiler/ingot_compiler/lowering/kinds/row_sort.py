"""The order of the keys of a row: by ranks where they are few, else by a radix sort from the lowest
byte on, which is stable.

In: keys, buffers for counts, keys and positions. Out: statements. Not done here: which rows are
sorted (``radix_sort``, ``suppress_overlaps``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import Dim, dim_mul, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.kinds.key_range import KeyRange
from ingot_compiler.lowering.kinds.program import INDEX
from ingot_compiler.lowering.kinds.rank_sort import RANKED_MAX, RANKED_WHOLE_MAX, rank_each
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
    Value,
)
from ingot_compiler.lowering.loops.program import (
    Filter,
    For,
    If,
    Let,
    LetIndex,
    Reduce,
    Statement,
    Store,
)
from ingot_runtime.lazy_dataclass import dataclass

DIGITS = 256
ROW = symbol(INDEX)


@dataclass(frozen=True, slots=True)
class DigitCounts:
    """i64[rows, passes, DIGITS] in a buffer: first how often a digit occurs, then where those that
    have it end. A pass is for one byte, the last one for what is left out."""

    buffer: int
    passes: int

    def place(self, digit: Dim, number: int) -> Dim:
        """Where the count of a digit of one pass lies."""
        return dim_mul(ROW, self.passes * DIGITS) + number * DIGITS + digit

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
class KeyPairs:
    """Keys and where they were, in a row of each of two buffers."""

    keys: int
    positions: int
    row: Dim

    def put(self, position: Value, dtype: DType) -> tuple[Statement, ...]:
        """Store ``Local("key")`` and its position ``at`` a place."""
        place = self.row + symbol("at")
        key = Store(self.keys, place, Local("key", dtype))
        return key, Store(self.positions, place, position)

    def kept(self, position: Value, dtype: DType) -> tuple[Store, ...]:
        """The stores of a filter of keys: ``Local("key")`` and its position."""
        key = Store(self.keys, self.row, Local("key", dtype))
        return key, Store(self.positions, self.row, position)

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
class RowSort:
    """What is sorted, and where: ``count`` of ``length`` keys go to the row of ``result``."""

    counts: DigitCounts
    pairs: tuple[KeyPairs, ...]
    key_at: Callable[[Dim], Value]
    length: Dim
    dtype: DType
    result: int
    count: Dim
    lanes: int

    def select(self) -> tuple[Statement, ...]:
        """The first ``count``: of a short row all keys are ranked."""
        long = (*self._leave_out(), *self.order(self.pairs[0], symbol("length")))
        if isinstance(self.length, int):
            return self.rank(None, self.length) if self.length <= RANKED_WHOLE_MAX else long
        is_short = Compare("less_equal", self.length, RANKED_WHOLE_MAX)
        is_long = Compare("less", RANKED_WHOLE_MAX, self.length)
        return If(is_short, self.rank(None, self.length)), If(is_long, long)

    def _leave_out(self) -> tuple[Statement, ...]:
        """Move the keys whose part of the range does not say that they are beyond ``count`` to the
        first pair, in their order, and name their number ``length``."""
        counts, d, i = self.counts, symbol("d"), symbol("i")
        number, parts = counts.passes - 1, KeyRange(self.dtype)
        part = parts.part(Local("key", self.dtype))
        enough = Apply("less", (counts.at(d, number), FromIndex(self.count, "i64")), "bool")
        below = Apply("cast", (enough,), parts.wide)
        limit = Reduce("limit", "sum", "d", DIGITS, parts.wide, (), below, lanes=True)
        is_wanted = Apply("less_equal", (part, Local("limit", parts.wide)), "bool")
        body, stores = (Let("key", self.key_at(i)),), self.pairs[0].kept(_index(i), self.dtype)
        return (
            *parts.statements(self.key_at, self.length),
            *counts.prepare({number: Apply("cast", (part,), "i64")}, self.length, self.key_at(i)),
            limit,
            Filter("length", "i", self.length, 0, self.length, body, is_wanted, stores),
        )

    def rank(self, source: KeyPairs | None, length: Dim) -> tuple[Statement, ...]:
        """Few keys by comparing all pairs; ``source``: if not the keys themselves."""
        is_all = self.count == self.length
        own, spare, c = dim_mul(ROW, self.count), self.pairs[1], symbol("c")
        buffer, row = (self.result, own) if is_all else (spare.positions, spare.row)

        def put(place: Dim, number: Dim) -> tuple[Store, ...]:
            position = source.get(number)[1] if source else _index(number)
            return (Store(buffer, row + place, position),)

        def key_at(index: Dim) -> Value:
            return source.get(index)[0] if source else self.key_at(index)

        ranked = rank_each(key_at, length, self.dtype, put, self.lanes)
        if is_all:
            return (ranked,)
        found = Store(self.result, own + c, spare.get(c)[1])
        return ranked, For("c", self.count, "vector", (found,))

    def order(self, source: KeyPairs | None, length: Dim) -> tuple[Statement, ...]:
        """By ranks or by passes, as many keys as there are."""
        is_few = Compare("less_equal", length, RANKED_MAX)
        if isinstance(length, int):
            return (self.rank if length <= RANKED_MAX else self.sort)(source, length)
        is_many = Compare("less", RANKED_MAX, length)
        return If(is_few, self.rank(source, length)), If(is_many, self.sort(source, length))

    def sort(self, source: KeyPairs | None, length: Dim) -> tuple[Statement, ...]:
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
        store = Store(self.result, dim_mul(ROW, self.count) + at, position)
        if self.count == self.length:
            return (store,)
        return (If(Compare("less", at, self.count), (store,)),)


def _index(index: Dim) -> Value:
    return FromIndex(index, "i64")
