"""ONNX Runtime Inverse: inverses of square matrices, by elimination with the greatest pivot of a
column.

In: x[.., m, m]. Out: x[.., m, m]. Not done here: speed for large matrices; a matrix without an
inverse, which ONNX Runtime does not notice either.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    cast,
    concat,
    range_mask,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
    wide_float,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_loop
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim, sizes_from
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.message import message


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    *batch, rows, size = sizes_from(context, x, 2)
    require_dim(context, rows - size, message("square matrices of ", size, " columns"), rows)
    dtype, count = wide_float(context.dtype_of(x)), dim_product(tuple(batch))
    matrix = reshape(context, cast(context, x, dtype), (count, size, size))
    places = [range_mask(context, (1, size, size), axis) for axis in (1, 2)]
    unit = cast(context, context.add("equal", *places), dtype)
    unit = broadcast_to(context, unit, (count, size, size))
    both = _eliminated(context, concat(context, [matrix, unit], 2), size)
    result = reshape(context, slice_axis(context, both, 2, size, size), (*batch, size, size))
    return (cast(context, result, context.dtype_of(x)),)


def _eliminated(context: OpContext, both: int, size: Dim) -> int:
    """[count, m, 2 m] whose left half has become the unit matrix: each turn makes one column."""
    dtype, places = context.dtype_of(both), range_mask(context, (1, size, 1), 1)
    zero, never = context.scalar(dtype, 0.0), context.scalar(dtype, -1.0)

    def step(inputs: Sequence[int]) -> Sequence[int]:
        turn, goes_on, both = inputs
        add = context.add
        own = reshape(context, turn, (1,))
        absolute = add("abs", add("gather", both, own, axis=2))
        absolute = add("select", add("less", places, turn), never, absolute)
        place = add("argmax", absolute, axis=1, keepdims=True, select_last=False)
        is_pivot = add("equal", places, place)
        row = reduce(context, add("select", is_pivot, both, zero), "sum", (1,), keepdims=True)
        moved = add("select", is_pivot, add("gather", both, own, axis=1), both)
        row = add("div", row, add("gather", row, own, axis=2))
        less = add("sub", moved, add("mul", add("gather", moved, own, axis=2), row))
        return goes_on, add("select", add("equal", places, turn), row, less)

    return build_loop(context, (size_scalar(context, size), size), (None, True), [both], step)[0]


OPS = (OnnxOp("Inverse", _translate, signature="X -> Y"),)
