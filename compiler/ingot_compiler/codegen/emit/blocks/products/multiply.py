"""The sum of a contraction for one register tile: chains of multiply-adds over nested loops of taps
and depth, one for each block.

In: pointers to the tile's rows of A and to its panel of B. Out: the accumulators, row by row, as
SSA values. Not done here: finding the pointers (``contraction_rows``), one step of depth
(``multiply_step``), the blocks (``multiply_blocks``), what becomes of the accumulators
(``epilogue``).

The order of every element's products is taps outer to inner, then depth.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    SumLoops,
)
from ingot_compiler.codegen.emit.blocks.products.multiply_blocks import emit_blocks
from ingot_compiler.codegen.emit.blocks.products.multiply_step import (
    INTO_L2,
    LINE_BYTES,
    Rest,
    emit_step,
    has_element_vectors,
    load_element_vectors,
)
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets, moved, operand
from ingot_compiler.codegen.emit.blocks.products.turned_factor import emit_turned
from ingot_compiler.codegen.emit.convert import MEMORY, REGISTER
from ingot_compiler.codegen.emit.operands import ZERO, Operands, Round, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, element_bits

_UNROLL_MAX = 4
# Multiply-adds that hide a loop's overhead; more would only cost compile time.
_CHAINS_PER_BLOCK = 60


def emit_sum(tile: AccumulatorTile, loops: SumLoops, starts: Operands = ()) -> Operands:
    """Return the accumulators, ``vectors`` of the first row, then of the next; they start at
    ``starts`` (none: at 0)."""

    def block(axes: tuple[Axis, ...], start: Offsets, sums: Operands) -> Operands:
        return _emit_loops(tile, SumLoops(axes, loops.rest), start, sums)

    return emit_blocks(tile.writer, loops, starts or start_of_sums(tile), block)


def start_of_sums(tile: AccumulatorTile) -> Operands:
    """Accumulators before the first product."""
    element = REGISTER[tile.factors.sum]
    return tuple(zeros(element, lanes) for lanes in tile.row_lanes) * len(tile.a)


def steps_of_sum(tile: AccumulatorTile, axis: Axis, count: int) -> Round:
    """What adds the products of so many steps of depth to the accumulators, from an index on."""
    return _steps(tile, axis, Offsets(ZERO, ZERO), count)


def _emit_loops(tile: AccumulatorTile, loops: SumLoops, start: Offsets, sums: Operands) -> Operands:
    """Emit the loops, whose first element is at `start`."""
    axis, *inner = loops.axes
    if not inner:
        sums = _emit_depth(tile, axis, start, sums)
        return _emit_rest(tile, axis, start, sums, loops.rest) if loops.rest else sums
    within = SumLoops(tuple(inner), loops.rest)

    def body(index: LlvmValue, carried: Operands) -> Operands:
        return _emit_loops(tile, within, moved(tile.writer, start, index, axis), carried)

    return tile.writer.loop(ZERO, operand(axis.extent), 1, sums, body)


def _emit_depth(tile: AccumulatorTile, axis: Axis, start: Offsets, sums: Operands) -> Operands:
    """Emit the innermost loop, unrolled, and what its extent may leave."""
    if tile.b_columns:
        return emit_turned(tile, axis, start, sums)
    w, unroll = tile.writer, _unroll(tile, axis)
    if tile.next_panel and isinstance(axis.b_step, int) and _known_multiple(axis) % unroll == 0:
        return _emit_parts(tile, axis, start, sums, unroll)
    block = _steps(tile, axis, start, unroll)
    if not isinstance(axis.extent, int):
        if axis.multiple % unroll == 0:
            return w.loop(ZERO, axis.extent, unroll, sums, block, nonempty=axis.multiple > 1)
        whole = w.binary("and", axis.extent, i64(-unroll))
        sums = w.loop(ZERO, whole, unroll, sums, block)
        return w.loop(whole, axis.extent, 1, sums, _steps(tile, axis, start, 1))
    rest = axis.extent % unroll
    end = i64(axis.extent - rest)
    if end.integer == unroll:
        sums = block(ZERO, sums)
    else:
        sums = w.loop(ZERO, end, unroll, sums, block)
    return _steps(tile, axis, start, rest)(end, sums) if rest else sums


def _known_multiple(axis: Axis) -> int:
    """What the rounds of a loop are a multiple of."""
    return axis.extent if isinstance(axis.extent, int) else axis.multiple


def _emit_parts(
    tile: AccumulatorTile, axis: Axis, start: Offsets, sums: Operands, unroll: int
) -> Operands:
    """Emit the innermost loop in parts, before each of which a line of the next panel is fetched:
    so many steps that the tiles together fetch all of it."""
    w, behind, element = tile.writer, tile.next_panel, MEMORY[tile.factors.b]
    assert behind
    assert isinstance(axis.b_step, int)
    step_bits, line_bits = tile.vectors * axis.b_step * element_bits(element), 8 * LINE_BYTES
    steps, rounds = unroll, _known_multiple(axis)
    while rounds % (2 * steps) == 0 and 2 * steps * step_bits <= behind.tile_count * line_bits:
        steps *= 2
    part = replace(axis, extent=steps, multiple=1, whole=axis.known_rounds)
    without = replace(tile, next_panel=None)

    def body(index: LlvmValue, carried: Operands) -> Operands:
        here = moved(w, start, index, axis)
        w.prefetch(behind.place(w, here.b, element), INTO_L2)
        return _emit_depth(without, part, here, carried)

    nonempty = _known_multiple(axis) > 1
    return w.loop(ZERO, operand(axis.extent), steps, sums, body, nonempty=nonempty)


def _emit_rest(
    tile: AccumulatorTile, axis: Axis, start: Offsets, sums: Operands, count: int
) -> Operands:
    """Emit the step behind the last whole one, of the last `count` elements."""
    here = moved(tile.writer, start, operand(axis.extent), axis)
    return emit_step(tile, axis, here, 0, sums, Rest(count, behind_others=axis.extent != 0))


def _steps(tile: AccumulatorTile, axis: Axis, start: Offsets, count: int) -> Round:
    """One round of the innermost loop: so many steps of depth."""

    def steps(index: LlvmValue, carried: Operands) -> Operands:
        here = moved(tile.writer, start, index, axis)
        is_whole = count == tile.lanes and has_element_vectors(tile, axis)
        vectors = load_element_vectors(tile, here) if is_whole else ()
        for step in range(count):
            factors = tuple(_in_all_lanes(tile, vector, step) for vector in vectors)
            carried = emit_step(tile, axis, here, step, carried, factors=factors)
        return carried

    return steps


def _in_all_lanes(tile: AccumulatorTile, vector: LlvmValue, step: int) -> LlvmValue:
    """What a step takes of a vector of as many steps as there are lanes."""
    count = vector.lanes // tile.lanes
    return tile.writer.shuffle(vector, [*range(count * step, count * (step + 1))] * tile.lanes)


def _unroll(tile: AccumulatorTile, axis: Axis) -> int:
    """Steps per block: a power of two."""
    if has_element_vectors(tile, axis):
        return tile.lanes
    unroll = 1 if tile.writer.target.is_scalar else _UNROLL_MAX
    while unroll > 1 and unroll * len(tile.a) * tile.vectors > _CHAINS_PER_BLOCK:
        unroll //= 2
    if (isinstance(axis.extent, int) or axis.multiple > 1) and _fills_registers(tile):
        return 1
    return unroll


def _fills_registers(tile: AccumulatorTile) -> bool:
    """Whether the accumulators leave no room for a step's elements: LLVM loads all of them ahead of
    a rest that is no loop, or those of the next step of a block, and then keeps the accumulators in
    memory in every step."""
    accumulators = len(tile.a) * tile.vectors
    return accumulators + len(tile.a) + tile.vectors > tile.writer.target.vector_register_count
