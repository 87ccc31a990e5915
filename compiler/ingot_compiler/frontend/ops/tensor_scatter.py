"""ONNX TensorScatter: a cache with an update written at every batch's own position.

In: a cache, an update, perhaps i64 positions. Out: core ``select`` over a ``gather_elements`` of
the update. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    broadcast_to,
    full,
    range_mask,
    reshape,
    sizes_from,
    sizes_of,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim


def _translate(context: OpContext) -> Sequence[int]:
    cache, update, where = context.operand(0), context.operand(1), context.optional(2)
    shape = sizes_from(context, cache, 1)
    new = sizes_of(context, update, len(shape))
    axis = context.axis(context.int_attribute("axis", -2), len(shape))
    circular = context.string_attribute("mode", "linear", ("linear", "circular")) == "circular"
    start = full(context, "i64", 0, (shape[0],)) if where is None else where
    place: list[Dim] = [1] * len(shape)
    place[0] = shape[0]
    offset = context.add("sub", range_mask(context, shape, axis), reshape(context, start, place))
    length, count = (
        reshape(context, context.integers([size]), ()) for size in (shape[axis], new[axis])
    )
    offset = context.add("mod", offset, length) if circular else offset
    zero = context.scalar("i64", 0)
    inside = context.add(
        "logical_and", context.add("less_equal", zero, offset), context.add("less", offset, count)
    )
    last = context.add("sub", count, context.scalar("i64", 1))
    picked = context.add("min", context.add("max", offset, zero), last)
    wide = tuple(size if position == axis else new[position] for position, size in enumerate(shape))
    moved = context.add("gather_elements", update, broadcast_to(context, picked, wide), axis=axis)
    return (context.add("select", inside, moved, cache),)


OP = OnnxOp("TensorScatter", _translate, 24)
