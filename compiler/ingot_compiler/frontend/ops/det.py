"""ONNX Det: determinants of square matrices, by elimination with the greatest pivot of a column.

In: x[.., m, m]. Out: x[..]. Not done here: speed for large matrices.

A small matrix of known size loses a row and a column with each step; others keep them, and a step
changes what is right of and below its column.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    cast,
    full,
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
from ingot_compiler.frontend.build.operand_sizes import require_dim
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul, dim_product
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import require

_WRITTEN_OUT_MAX = 16


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    require(context.rank_of(x) >= 2, "x[.., m, m]", context.type_of(x))
    *batch, rows, size = context.shape_of(x)
    square = message("square matrices of ", size, " columns")
    require_dim(context, dim_add(rows, dim_mul(size, -1)), square, rows)
    wide = cast(context, x, wide_float(context.dtype_of(x)))
    count = dim_product(tuple(batch))
    matrix = reshape(context, wide, (count, size, size))
    total = full(context, context.dtype_of(wide), 1.0, (count, 1, 1))
    if not isinstance(size, int) or size > _WRITTEN_OUT_MAX:
        total = _looped(context, total, matrix, size)
        size = 0
    while size:
        total, matrix = _eliminate(context, total, matrix, size)
        size -= 1
    return (cast(context, reshape(context, total, batch), context.dtype_of(x)),)


def _looped(context: OpContext, total: int, matrix: int, size: Dim) -> int:
    """The product of ``total`` and the pivots, [count, 1, 1]."""
    dtype, places = context.dtype_of(matrix), range_mask(context, (1, size, 1), 1)
    columns = range_mask(context, (1, 1, size), 2)
    zero, one = (context.scalar(dtype, number) for number in (0.0, 1.0))

    def step(inputs: Sequence[int]) -> Sequence[int]:
        turn, goes_on, total, matrix = inputs
        add = context.add
        below = add("less", turn, places)
        own = reshape(context, turn, (1,))
        column = add("gather", matrix, own, axis=2)
        # Rows above are done: no element of theirs is as large as the least of the others.
        absolute = add(
            "select", add("less", places, turn), context.scalar(dtype, -1.0), add("abs", column)
        )
        place = add("argmax", absolute, axis=1, keepdims=True, select_last=False)
        is_pivot = add("equal", places, place)
        row = reduce(context, add("select", is_pivot, matrix, zero), "sum", (1,), keepdims=True)
        pivot = add("gather", row, own, axis=2)
        signed = add("select", add("equal", place, turn), pivot, add("neg", pivot))
        moved = add("select", is_pivot, add("gather", matrix, own, axis=1), matrix)
        divisor = add("select", add("equal", pivot, zero), one, pivot)
        factor = add("div", add("gather", moved, own, axis=2), divisor)
        less = add("sub", moved, add("mul", factor, row))
        changes = add("logical_and", below, add("less", turn, columns))
        return goes_on, add("mul", total, signed), add("select", changes, less, moved)

    turns = (size_scalar(context, size), size)
    return build_loop(context, turns, (None, True), [total, matrix], step)[0]


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


OPS = (OnnxOp("Det", _translate),)
