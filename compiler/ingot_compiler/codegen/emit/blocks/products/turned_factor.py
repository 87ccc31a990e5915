"""The innermost loop of a sum whose second factor lies along the depth: square blocks of it are
turned in registers, then multiplied row by row.

In: a tile with ``b_columns``, its loop, its accumulators. Out: the accumulators, with the products
added in their order. Not done here: the shuffles (``shuffles``), one step (``multiply_step``).

A few rows do not pay for a copy of the factor that lies otherwise: it is written and read again,
where each tile here reads every element once.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.products.accumulators import AccumulatorTile, Axis
from ingot_compiler.codegen.emit.blocks.products.multiply_step import emit_step
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets, moved, operand
from ingot_compiler.codegen.emit.blocks.shuffles import transposed
from ingot_compiler.codegen.emit.control import multiple_below, values_if
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.lanes import known_tail_mask, load_lanes, tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_runtime.lazy_dataclass import dataclass


def emit_turned(tile: AccumulatorTile, axis: Axis, start: Offsets, sums: Operands) -> Operands:
    """Emit whole blocks, then the steps that are left."""
    w, lanes, element = tile.writer, tile.lanes, MEMORY[tile.factors.b]
    slot = w.lane_slot(element, lanes, lanes)
    in_slot = replace(tile, b=((slot, 0),), b_columns=(), mask=None, steps_ahead=0)
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
class _Blocks:
    """Blocks of the second factor of ``tile``; a turned one is what ``in_slot`` reads."""

    tile: AccumulatorTile
    in_slot: AccumulatorTile
    axis: Axis
    start: Offsets

    def whole(self, index: LlvmValue, sums: Operands) -> Operands:
        """As many steps as there are lanes, from ``index`` on."""
        return self.some(index, self.tile.lanes, sums)

    def some(self, index: LlvmValue, count: int, sums: Operands) -> Operands:
        """A known number of steps."""
        here = moved(self.tile.writer, self.start, index, self.axis)
        self._turn(here, known_tail_mask(count, self.tile.lanes))
        for step in range(count):
            sums = self._step(here.a, ZERO, step, sums)
        return sums

    def rest(self, index: LlvmValue, count: LlvmValue, sums: Operands) -> Operands:
        """So many steps as only a run knows."""
        w, lanes = self.tile.writer, self.tile.lanes
        here = moved(w, self.start, index, self.axis)
        self._turn(here, tail_mask(w, ZERO, count, lanes))

        def step(number: LlvmValue, carried: Operands) -> Operands:
            a = w.add(here.a, w.mul(number, operand(self.axis.a_step)))
            return self._step(a, w.mul(number, i64(lanes)), 0, carried)

        return w.loop(ZERO, count, 1, sums, step)

    def _turn(self, here: Offsets, mask: LlvmValue | None) -> None:
        """Store a block, in which a row has an element of each column."""
        w, lanes, element = self.tile.writer, self.tile.lanes, MEMORY[self.tile.factors.b]
        columns = [
            load_lanes(w, w.offset(w.offset(first, here.b, element), i64(at), element), element, lanes, mask)
            for first, at in self.tile.b_columns
        ]  # fmt: skip
        ((slot, _),) = self.in_slot.b
        for number, row in enumerate(transposed(w, columns)):
            w.store(row, w.offset(slot, i64(number * lanes), element))

    def _step(self, a: LlvmValue, row: LlvmValue, step: int, sums: Operands) -> Operands:
        """One step, by a row of the turned block."""
        axis = Axis(self.tile.lanes, self.axis.a_step, self.tile.lanes)
        return emit_step(self.in_slot, axis, Offsets(a, row), step, sums)
