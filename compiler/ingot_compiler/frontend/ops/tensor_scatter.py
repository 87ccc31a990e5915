"""ONNX TensorScatter: a cache with an update written at every batch's own position.

In: a cache, an update, perhaps i64 positions. Out: core ``select`` over a ``gather_elements`` of
the update. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    broadcast_to,
    clamp,
    full,
    range_mask,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import sizes_from, sizes_of
from ingot_compiler.ir.dims import Dim


def _translate(context: OpContext) -> Sequence[int]:
    cache, update = context.operand(0), context.operand(1)
    shape = sizes_from(context, cache, 1)
    new = sizes_of(context, update, len(shape))
    axis = context.axis_attribute(-2, len(shape))
    offset = _offsets(context, shape, axis)
    count, zero = size_scalar(context, new[axis]), context.scalar("i64", 0)
    not_before, not_behind = (
        context.add("less_equal", zero, offset),
        context.add("less", offset, count),
    )
    inside = context.add("logical_and", not_before, not_behind)
    last = context.add("sub", count, context.scalar("i64", 1))
    picked = clamp(context, offset, zero, last)
    wide = (*new[:axis], shape[axis], *new[axis + 1 :])
    moved = context.add("gather_elements", update, broadcast_to(context, picked, wide), axis=axis)
    return (context.add("select", inside, moved, cache),)


def _offsets(context: OpContext, shape: tuple[Dim, ...], axis: int) -> int:
    """How far behind the place where its sample's update begins each element lies."""
    circular = context.string_attribute("mode", "linear", ("linear", "circular")) == "circular"
    where = context.optional(2)
    start = full(context, "i64", 0, (shape[0],)) if where is None else where
    place = range_mask(context, shape, axis)
    column = reshape(context, start, (shape[0], *[1] * (len(shape) - 1)))
    offset = context.add("sub", place, column)
    return context.add("mod", offset, size_scalar(context, shape[axis])) if circular else offset


OP = OnnxOp("TensorScatter", _translate, 24)
