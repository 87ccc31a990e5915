"""The sum of a contraction whose units load its factors together.

In: the memory that the team shares. Out: the accumulators of this unit, row by row. Not done here:
what lies in the memory (``team_memory``), one unit alone (``multiply``).

All units of a team run the same loops, so that they wait for each other in the same places: before
the memory is filled anew, and before it is read. The order of every element's products is that of
a unit alone: taps outer to inner, then depth, in its blocks, and not a step more.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import Axis
from ingot_compiler.codegen.emit.blocks.products.multiply_blocks import emit_blocks
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets, moved, operand
from ingot_compiler.codegen.emit.blocks.products.team_memory import READ_AT_ONCE, Count, TeamMemory
from ingot_compiler.codegen.emit.convert import REGISTER
from ingot_compiler.codegen.emit.operands import ZERO, Operands, Round, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue


def emit_team_sum(memory: TeamMemory) -> Operands:
    """Return the accumulators: the vectors of the first row, then of the next."""
    unit = memory.unit
    zero = zeros(REGISTER[unit.factors.sum], unit.lanes)
    starts = (zero,) * (len(memory.rows) * len(memory.columns))

    def block(axes: tuple[Axis, ...], start: Offsets, sums: Operands) -> Operands:
        return _emit_loops(memory, axes, start, sums)

    return emit_blocks(unit.context.writer, unit.sum, starts, block)


def _emit_loops(
    memory: TeamMemory, axes: tuple[Axis, ...], start: Offsets, sums: Operands
) -> Operands:
    axis, *inner = axes
    if not inner:
        return _emit_depth(memory, axis, start, sums)
    w = memory.unit.context.writer

    def body(index: LlvmValue, carried: Operands) -> Operands:
        return _emit_loops(memory, tuple(inner), moved(w, start, index, axis), carried)

    return w.loop(ZERO, operand(axis.extent), 1, sums, body)


def _emit_depth(memory: TeamMemory, axis: Axis, start: Offsets, sums: Operands) -> Operands:
    """The innermost loop: as many steps as the memory holds, and what its extent leaves."""
    w, steps, extent = memory.unit.context.writer, memory.steps, axis.extent
    filled = _filled(memory, axis, start, steps)
    if isinstance(extent, int):
        rest = extent % steps
        end = i64(extent - rest)
        sums = w.loop(ZERO, end, steps, sums, filled)
        return _filled(memory, axis, start, rest)(end, sums) if rest else sums
    whole = w.binary("and", extent, i64(-steps))
    sums = w.loop(ZERO, whole, steps, sums, filled)
    last = _filled(memory, axis, start, w.sub(extent, whole))
    return w.loop(whole, extent, steps, sums, last)


def _filled(memory: TeamMemory, axis: Axis, start: Offsets, count: Count) -> Round:
    """Fill the memory once, and add its products."""
    w = memory.unit.context.writer

    def body(index: LlvmValue, carried: Operands) -> Operands:
        w.team_barrier()
        memory.bring(axis, moved(w, start, index, axis), count)
        w.team_barrier()
        return _emit_products(memory, carried, count)

    return body


def _emit_products(memory: TeamMemory, sums: Operands, count: Count) -> Operands:
    w = memory.unit.context.writer
    if not isinstance(count, int):
        return w.loop(ZERO, count, 1, sums, _steps(memory, 1, is_aligned=False))
    whole, rest = count // READ_AT_ONCE * READ_AT_ONCE, count % READ_AT_ONCE
    block = _steps(memory, READ_AT_ONCE, is_aligned=True)
    sums = w.loop(ZERO, i64(whole), READ_AT_ONCE, sums, block)
    return _steps(memory, rest, is_aligned=True)(i64(whole), sums) if rest else sums


def _steps(memory: TeamMemory, count: int, *, is_aligned: bool) -> Round:
    w = memory.unit.context.writer

    def body(index: LlvmValue, carried: Operands) -> Operands:
        for step in range(count):
            rows, columns = memory.factors(index, step, is_aligned=is_aligned)
            pairs = [(row, column) for row in rows for column in columns]
            carried = tuple(w.fma(*pair, total) for pair, total in zip(pairs, carried, strict=True))
        return carried

    return body
