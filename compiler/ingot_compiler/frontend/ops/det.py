"""ONNX Det: determinants of square matrices, by elimination with the greatest pivot of a column.

In: x[.., m, m]. Out: x[..]. Not done here: sizes that are known at run time only, and larger ones
(unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    cast,
    full,
    range_mask,
    reduce,
    reshape,
    slice_axis,
    wide_float,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_product
from ingot_compiler.ir.op_type_error import require

_SIZE_MAX = 32


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    require(context.rank_of(x) >= 2, "x[.., m, m]", context.type_of(x))
    *batch, rows, size = context.shape_of(x)
    if not isinstance(size, int) or not isinstance(rows, int):
        raise Unsupported("matrices of a size that is known at run time only")
    require(rows == size, "square matrices", context.type_of(x))
    if size > _SIZE_MAX:
        raise Unsupported(f"matrices of {size} rows: up to {_SIZE_MAX} have a translation")
    wide = cast(context, x, wide_float(context.dtype_of(x)))
    count = dim_product(tuple(batch))
    matrix = reshape(context, wide, (count, size, size))
    total = full(context, context.dtype_of(wide), 1.0, (count, 1, 1))
    while size:
        total, matrix = _eliminate(context, total, matrix, size)
        size -= 1
    return (cast(context, reshape(context, total, batch), context.dtype_of(x)),)


def _eliminate(context: OpContext, total: int, matrix: int, size: int) -> tuple[int, int]:
    """The pivot times ``total``, and the matrix without its row and column."""
    dtype = context.dtype_of(matrix)
    column = slice_axis(context, matrix, 2, 0, 1)
    absolute = context.add("abs", column)
    place = context.add("argmax", absolute, axis=1, keepdims=True, select_last=False)
    is_pivot = context.add("equal", range_mask(context, (1, size, 1), 1), place)
    zero, one = context.scalar(dtype, 0.0), context.scalar(dtype, 1.0)
    row = context.add("select", is_pivot, matrix, zero)
    row = reduce(context, row, "sum", (1,), keepdims=True)
    pivot = slice_axis(context, row, 2, 0, 1)
    at_first = context.add("equal", place, context.scalar("i64", 0))
    signed = context.add("select", at_first, pivot, context.add("neg", pivot))
    total = context.add("mul", total, signed)
    if size == 1:
        return total, matrix
    first = slice_axis(context, matrix, 1, 0, 1)
    moved = context.add("select", is_pivot, first, matrix)
    rest = slice_axis(context, moved, 1, 1, size - 1)
    divisor = context.add("select", context.add("equal", pivot, zero), one, pivot)
    factor = context.add("div", slice_axis(context, rest, 2, 0, 1), divisor)
    others = slice_axis(context, rest, 2, 1, size - 1)
    return total, context.add(
        "sub", others, context.add("mul", factor, slice_axis(context, row, 2, 1, size - 1))
    )


OP = OnnxOp("Det", _translate)
