"""The loops of a sum of products, from the indices that it reads.

In: loops, indices of both factors that are linear in them. Out: ``SumLoops``. Not done here: which
blocks a sum has (``sum_blocks``), code (``multiply``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    Axis,
    AxisParts,
    Step,
    SumLoops,
    merged_dims,
)
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.ir.dims import Dim, substitute
from ingot_compiler.kernels.sum_blocks import Loop, Parts, sum_blocks


def loops_in_blocks(
    context: EmitContext, loops: Sequence[Loop], a_index: Dim, b_index: Dim
) -> SumLoops:
    """The loops of a sum of floats, outer to inner, those of its blocks apart."""
    blocks = sum_blocks(loops)
    a_index, b_index = (substitute(index, blocks.index) for index in (a_index, b_index))
    inside = emit_axes(context, merged_dims(blocks.inside, a_index, b_index))
    around = merged_dims(blocks.around, a_index, b_index) if blocks.around else ()
    parts = None
    if blocks.parts is not None:
        inside = (_with_whole(inside[0], blocks.parts), *inside[1:])
        if not blocks.parts.are_equal:
            parts = AxisParts(blocks.parts.rounds, _step(context, blocks.parts.whole))
    return SumLoops(inside, 0, emit_axes(context, around), parts)


def _with_whole(axis: Axis, parts: Parts) -> Axis:
    """A loop over parts that knows how long it is in all."""
    if not (isinstance(axis.extent, int) and isinstance(parts.whole, int)):
        return axis
    return replace(axis, whole=axis.extent // parts.rounds * parts.whole)


def emit_axes(context: EmitContext, dims: Sequence[tuple[Dim, Dim, Dim]]) -> tuple[Axis, ...]:
    """The loops of these extents and steps."""
    steps = (tuple(_step(context, part) for part in dim) for dim in dims)
    return tuple(Axis(extent, a_step, b_step) for extent, a_step, b_step in steps)


def _step(context: EmitContext, value: Dim) -> Step:
    """A number, or what computes it."""
    return value if isinstance(value, int) else emit_index(context, value)
