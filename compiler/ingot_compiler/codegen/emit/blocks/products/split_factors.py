"""Factors of f32 that are split into parts of bf16: where their parts lie, and how they are
multiplied where products of parts are not close enough.

In: ``Unit`` and ``Panel`` of a contraction of parts. Out: units and pointers of each part; sums on
the stack. Not done here: products of parts (``matrix_tiles``), making the parts
(``kernels.products.float_parts``).

An element is one chain of multiply-adds of f32, so that infinities, NaN and denormals come out as
from one. The weights are sums of their parts, the lower ones first: none overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.products.accumulators import Pointers, merged_dims
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Panel, Unit, vectors_of_b
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import Dim, substitute
from ingot_compiler.lowering.loops.loop_parts import SplitFactors

_ROWS = 8  # that are multiplied together
_HALF_BITS, _HIGH_HALF = 16, -65536
_FLOAT_BYTES = 4


def parts_of(unit: Unit, panel: Panel) -> tuple[tuple[Unit, Pointers], ...]:
    """The unit once for each part of both factors, the greatest one first, and where the vectors of
    that part of B begin."""
    split = unit.statement.split
    others = zip(split.a, split.b, strict=True) if split else ()
    units = (replace(unit, statement=replace(unit.statement, a=a, b=b)) for a, b in others)
    lower = ((part, vectors_of_b(part, panel.column, panel.vectors)) for part in units)
    return ((unit, panel.b), *lower)


def emit_unsplit_tile(
    unit: Unit,
    panel: Panel,
    split: SplitFactors,
    rows: tuple[LlvmValue, LlvmValue | None, int],
    sums: LlvmValue,
) -> None:
    """Multiply A itself by the sums of the parts of B, and store rows at ``sums``.

    ``rows``: the first one, how many there are (None: all), and how many are stored, a multiple of
    ``_ROWS``.
    """
    w, (first, valid, count) = unit.context.writer, rows
    last = w.add(first, w.sub(valid or i64(count), i64(1)))
    plain = _plain(unit, split)
    chains = _Chains(unit, plain, [columns for _, columns in parts_of(unit, panel)])

    def some(start: LlvmValue) -> None:
        places = [
            w.intrinsic("smin", w.add(first, w.add(start, i64(at))), last) for at in range(_ROWS)
        ]
        starts = _starts(unit, panel, places)
        found = chains.emit([plain.address_of_a(place) for place in places], starts)
        for number, total in enumerate(found):
            row, vector = divmod(number, panel.vectors)
            line = w.mul(w.add(start, i64(row)), i64(panel.vectors * unit.lanes))
            place = w.offset(sums, w.add(line, i64(vector * unit.lanes)), "float")
            w.store(total, place, _FLOAT_BYTES * unit.lanes)

    for_each(w, ZERO, i64(count), _ROWS, some)


def _starts(unit: Unit, panel: Panel, rows: Sequence[LlvmValue]) -> Operands:
    """What the sums of rows begin at."""
    w, carried = unit.context.writer, unit.statement.carried
    if carried is None:
        return (zeros("float", unit.lanes),) * (len(rows) * panel.vectors)
    firsts = [unit.address_of_carried(carried, row, panel.column) for row in rows]
    return tuple(
        w.load(w.offset(first, i64(vector * unit.lanes), "float"), "float", unit.lanes)
        for first in firsts
        for vector in range(panel.vectors)
    )


def _plain(unit: Unit, split: SplitFactors) -> Unit:
    """The unit with A itself in the place of its first part."""
    s = unit.statement
    zero: dict[str, Dim] = {name: 0 for name, _ in (*s.taps, (s.depth, 0))}
    statement = replace(s, a=split.plain, a_index=split.plain_index)
    return replace(unit, statement=statement, a_index=substitute(split.plain_index, zero))


class _Chains:
    """Chains of multiply-adds over taps and depth: of A itself, and of parts of B."""

    def __init__(self, unit: Unit, plain: Unit, columns: Sequence[Pointers]) -> None:
        self._unit, self._columns = unit, columns
        s = plain.statement
        self._axes = merged_dims(s.taps, s.a_index, s.b_index) if s.taps else ()

    def emit(self, rows: Sequence[LlvmValue], starts: Operands) -> Operands:
        """The sums of some rows, each from its pointer on."""
        return self._taps(rows, self._axes, (ZERO, ZERO), starts)

    def _taps(
        self,
        rows: Sequence[LlvmValue],
        axes: Sequence[tuple[Dim, Dim, Dim]],
        at: tuple[LlvmValue, LlvmValue],
        sums: Operands,
    ) -> Operands:
        w, statement = self._unit.context.writer, self._unit.statement
        if not axes:
            assert isinstance(statement.depth_extent, int)
            depth = i64(statement.depth_extent)
            return w.loop(ZERO, depth, 2, sums, lambda k, now: self._pair(rows, at, k, now))
        extent, *steps = (emit_index(self._unit.context, dim) for dim in axes[0])

        def turn(index: LlvmValue, now: Operands) -> Operands:
            a, b = (w.add(old, w.mul(index, step)) for old, step in zip(at, steps, strict=True))
            return self._taps(rows, axes[1:], (a, b), now)

        return w.loop(ZERO, extent, 1, sums, turn)

    def _pair(
        self,
        rows: Sequence[LlvmValue],
        at: tuple[LlvmValue, LlvmValue],
        k: LlvmValue,
        sums: Operands,
    ) -> Operands:
        """Add the products of two elements of the depth, which lie together in B."""
        w, panels = self._unit.context.writer, self._unit.statement.b_panels
        assert panels
        a, b = w.add(at[0], k), w.add(at[1], w.mul(k, i64(panels.columns)))
        columns = [self._weights(vector, b) for vector in range(len(self._columns[0]))]
        totals, result = iter(sums), list[LlvmValue]()
        for row in rows:
            factors = [w.load(w.offset(row, w.add(a, i64(at)), "float"), "float") for at in (0, 1)]
            for pair in columns:
                total = next(totals)
                for factor, weight in zip(factors, pair, strict=True):
                    total = w.fma(w.splat(factor, self._unit.lanes), weight, total)
                result.append(total)
        return tuple(result)

    def _weights(self, vector: int, offset: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
        """A vector of two rows of B."""
        w, lanes = self._unit.context.writer, self._unit.lanes
        words: list[LlvmValue] = []
        for pointers in self._columns:
            pointer, displacement = pointers[vector]
            place = w.offset(pointer, w.add(offset, i64(displacement)), "i16")
            words.append(w.load(place, "i32", lanes))
        low = [w.binary("shl", word, constant(_HALF_BITS, "i32", lanes)) for word in words]
        high = [w.binary("and", word, constant(_HIGH_HALF, "i32", lanes)) for word in words]
        return self._joined(low), self._joined(high)

    def _joined(self, parts: Sequence[LlvmValue]) -> LlvmValue:
        """The sum of parts, the lower ones first."""
        w = self._unit.context.writer
        numbers = [w.convert("bitcast", part, "float") for part in parts]
        total = numbers.pop()
        while numbers:
            total = w.binary("fadd", numbers.pop(), total)
        return total
