"""The innermost loop of a sum whose second factor lies along the depth: square blocks of it are
turned in registers, then multiplied row by row.

In: a tile with ``b_columns``, its loop, its accumulators. Out: the accumulators, with the products
added in their order. Not done here: the shuffles (``shuffles``), one step (``multiply_step``).

A few rows do not pay for a copy of the factor that lies otherwise: it is written and read again,
where each tile here reads every element once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    side_by_side,
)
from ingot_compiler.codegen.emit.blocks.products.multiply_step import emit_step
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets, moved, operand
from ingot_compiler.codegen.emit.blocks.shuffles import QUAD, joined, transposed, within_blocks
from ingot_compiler.codegen.emit.control import multiple_below, values_if
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.lanes import known_tail_mask, load_lanes, tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_runtime.lazy_dataclass import dataclass


def emit_turned(tile: AccumulatorTile, axis: Axis, start: Offsets, sums: Operands) -> Operands:
    """Emit whole blocks, then the steps that are left."""
    w, lanes, element = tile.writer, tile.lanes, MEMORY[tile.factors.b]
    slot = w.lane_slot(element, lanes, lanes * tile.vectors)
    rows = side_by_side(slot, tile.vectors, lanes * lanes)
    in_slot = replace(tile, b=rows, b_columns=(), mask=None, steps_ahead=0)
    block = _Blocks(tile, in_slot, axis, start)
    extent = operand(axis.extent)
    whole = multiple_below(w, extent, lanes)
    sums = w.loop(ZERO, whole, lanes, sums, block.whole)
    if axis.multiple % lanes == 0:
        return sums
    left = w.sub(extent, whole)
    if left.integer is not None:
        return block.some(whole, left.integer, sums) if left.integer else sums
    return values_if(w, w.compare("slt", ZERO, left), sums, lambda: block.rest(whole, left, sums))


@dataclass(frozen=True, slots=True)
class ColumnPlaces:
    """Where columns begin whose elements lie together, as many as there are ``lanes`` for each
    vector of a row."""

    writer: Writer
    lanes: int
    element: str
    places: Pointers

    def rows(self, vector: int, first: LlvmValue, mask: LlvmValue | None) -> list[LlvmValue]:
        """A vector of each of as many rows as there are lanes, from element ``first`` of the
        columns on; 0 where a mask, which is over rows, does not hold."""
        numbers = range(vector * self.lanes, (vector + 1) * self.lanes)
        columns = [self._place(number, first) for number in numbers]
        if mask is None and self.lanes > QUAD:
            return self._whole_rows(columns)
        w = self.writer
        loaded = [load_lanes(w, place, self.element, self.lanes, mask) for place in columns]
        return transposed(w, loaded)

    def _whole_rows(self, columns: Sequence[LlvmValue]) -> list[LlvmValue]:
        """Load whole columns: four elements at a time are loaded where they are wanted,
        since a load into a part of a register costs less than bringing parts of two into one."""
        w, rows = self.writer, list[LlvmValue]()
        for first in range(0, self.lanes, QUAD):
            places = [w.offset(column, i64(first), self.element) for column in columns]
            parts = (
                [w.load(place, self.element, QUAD) for place in places[number::QUAD]]
                for number in range(QUAD)
            )
            rows += within_blocks(w, [joined(w, part) for part in parts])
        return rows

    def _place(self, number: int, first: LlvmValue) -> LlvmValue:
        pointer, at = self.places[number]
        w = self.writer
        return w.offset(w.offset(pointer, first, self.element), i64(at), self.element)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of the second factor of ``tile``; a turned one is what ``in_slot`` reads."""

    tile: AccumulatorTile
    in_slot: AccumulatorTile
    axis: Axis
    start: Offsets

    def whole(self, index: LlvmValue, sums: Operands) -> Operands:
        """Add as many steps as there are lanes, from ``index`` on."""
        return self.some(index, self.tile.lanes, sums)

    def some(self, index: LlvmValue, count: int, sums: Operands) -> Operands:
        """A known number of steps."""
        here = moved(self.tile.writer, self.start, index, self.axis)
        self._turn(here, known_tail_mask(count, self.tile.lanes))
        for step in range(count):
            sums = self._step(here.a, ZERO, step, sums)
        return sums

    def rest(self, index: LlvmValue, count: LlvmValue, sums: Operands) -> Operands:
        """Add a number of steps that only a run knows."""
        w, lanes = self.tile.writer, self.tile.lanes
        here = moved(w, self.start, index, self.axis)
        self._turn(here, tail_mask(w, ZERO, count, lanes))

        def step(number: LlvmValue, carried: Operands) -> Operands:
            a = w.add(here.a, w.mul(number, operand(self.axis.a_step)))
            return self._step(a, w.mul(number, i64(lanes)), 0, carried)

        return w.loop(ZERO, count, 1, sums, step)

    def _turn(self, here: Offsets, mask: LlvmValue | None) -> None:
        """Store a block for each vector, in which a row has an element of each column."""
        w, lanes, element = self.tile.writer, self.tile.lanes, MEMORY[self.tile.factors.b]
        columns = ColumnPlaces(w, lanes, element, self.tile.b_columns)
        for vector, (slot, first) in enumerate(self.in_slot.b):
            for number, row in enumerate(columns.rows(vector, here.b, mask)):
                w.store(row, w.offset(slot, i64(first + number * lanes), element))

    def _step(self, a: LlvmValue, row: LlvmValue, step: int, sums: Operands) -> Operands:
        """One step, by a row of the turned block."""
        axis = Axis(self.tile.lanes, self.axis.a_step, self.tile.lanes)
        return emit_step(self.in_slot, axis, Offsets(a, row), step, sums)
