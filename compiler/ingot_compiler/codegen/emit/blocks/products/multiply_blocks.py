"""Sums in blocks: loops around the sum of one block.

In: the loops of a sum, what adds up one block. Out: the accumulators. Not done here: which blocks a
sum has (``sum_blocks``), the loops of one (``multiply``, ``team_sum``).

What the blocks before add up to waits in memory, each vector in the place of its accumulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from ingot_compiler.codegen.emit.blocks.products.accumulators import Axis, AxisParts, Step, SumLoops
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets, moved, operand
from ingot_compiler.codegen.emit.control import values_if
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue, element_bits
from ingot_compiler.codegen.writer import Writer
from ingot_runtime.lazy_dataclass import dataclass

BlockSum = Callable[[tuple[Axis, ...], Offsets, Operands], Operands]
"""(loops, where they begin, accumulators) -> accumulators, with the products added."""


def emit_blocks(w: Writer, loops: SumLoops, starts: Operands, block: BlockSum) -> Operands:
    """Return the sums of all blocks, each of which starts at ``starts``; these are zeros where there
    may be several blocks."""
    if not loops.blocks:
        return block(loops.axes, Offsets(ZERO, ZERO), starts)
    count = _product(w, [axis.extent for axis in loops.blocks])
    blocks = _Blocks(w, loops, starts, block)
    if count.integer is not None:
        return blocks.total(count)
    return values_if(w, w.compare("slt", ZERO, count), starts, lambda: blocks.total(count))


def _product(w: Writer, extents: Sequence[Step]) -> LlvmValue:
    known = i64(math.prod(extent for extent in extents if isinstance(extent, int)))
    open_ones = (extent for extent in extents if not isinstance(extent, int))
    return reduce(w.mul, open_ones, known)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The blocks of one register tile."""

    w: Writer
    loops: SumLoops
    starts: Operands
    block: BlockSum

    def total(self, count: LlvmValue) -> Operands:
        """Add up the blocks, of which there is one at least."""
        w, element = self.w, self.starts[0].element
        lanes = max(value.lanes for value in self.starts)
        slot, align = (
            w.lane_slot(element, lanes, len(self.starts)),
            lanes * element_bits(element) // 8,
        )
        places = [
            w.offset(slot, i64(number * lanes), element) for number in range(len(self.starts))
        ]

        def keep(values: Operands) -> None:
            for place, value in zip(places, values, strict=True):
                w.store(value, place, align)

        def with_kept(values: Operands) -> Operands:
            pairs = zip(places, values, strict=True)
            kept = ((w.load(place, element, value.lanes, align), value) for place, value in pairs)
            return tuple(w.binary("fadd", *pair) for pair in kept)

        def between(index: LlvmValue, values: Operands) -> None:
            if count.integer == 2:
                keep(values)
                return
            is_first = w.compare("eq", index, ZERO)
            w.if_else(is_first, lambda: keep(values), lambda: keep(with_kept(values)))

        sums = w.loop_with_between(count, self.one, between)
        if count.integer is not None:
            return with_kept(sums)
        several = w.compare("slt", i64(1), count)
        return values_if(w, several, sums, lambda: with_kept(sums))

    def one(self, number: LlvmValue) -> Operands:
        """The sum of the block of a number."""
        w, start, left = self.w, Offsets(ZERO, ZERO), number
        axes, parts = self.loops.axes, self.loops.parts
        for place, axis in reversed(tuple(enumerate(self.loops.blocks))):
            extent = operand(axis.extent)
            index = left if place == 0 else w.binary("urem", left, extent)
            left = left if place == 0 else w.binary("udiv", left, extent)
            start = moved(w, start, index, axis)
            if parts is not None and axis is self.loops.blocks[-1]:
                axes = (self._part(parts, index), *axes[1:])
        return self.block(axes, start, self.starts)

    def _part(self, parts: AxisParts, number: LlvmValue) -> Axis:
        """The first loop of the block that is the part of a number."""
        w, whole, count = self.w, parts.whole, operand(self.loops.blocks[-1].extent)
        axis = self.loops.axes[0]
        assert isinstance(axis.extent, int)
        others = axis.extent // parts.rounds  # rounds of loops that became one with it
        left = w.sub(operand(whole), w.mul(number, i64(parts.rounds)))
        is_last = w.compare("eq", w.add(number, i64(1)), count)
        rounds = w.mul(w.select(is_last, left, i64(parts.rounds)), i64(others))
        multiple = math.gcd(whole, parts.rounds) * others if isinstance(whole, int) else 1
        return replace(axis, extent=rounds, multiple=multiple)
