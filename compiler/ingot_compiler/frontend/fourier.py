"""Discrete Fourier transforms as products with matrices of cosines and sines, whose angles are
reduced in integers.

In: a context, a tensor [.., 1 or 2]. Out: the transform. Not done here: fast transforms.

Sums are f64: terms of a spectrum cancel, and what is left must be small beside them.
"""

from __future__ import annotations

import math

from ingot_compiler.frontend.compose import (
    binary_scalar,
    cast,
    concat,
    iota,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min


def _matrices(context: OpContext, rows: Dim, columns: Dim, length: Dim) -> tuple[int, int]:
    """f64 cos and sin of 2 pi row column / length."""
    row = reshape(context, iota(context, rows), (rows, 1))
    product = context.add("mul", row, iota(context, columns))
    size = size_scalar(context, length)
    turn = context.add("mod", product, context.add("max", size, context.scalar("i64", 1)))
    fraction = context.add("div", cast(context, turn, "f64"), cast(context, size, "f64"))
    angle = binary_scalar(context, "mul", fraction, 2 * math.pi)
    return context.add("cos", angle), context.add("sin", angle)


def transform(
    context: OpContext, x: int, axis: int, size: Dim | None, *, inverse: bool, onesided: bool
) -> int:
    """The transform of length ``size`` (that of the axis when None) along ``axis``: [.., 2], or
    [.., 1] where it is real."""
    dtype, rank = context.dtype_of(x), context.rank_of(x)
    own = context.shape_of(x)[axis]
    if not isinstance(context.shape_of(x)[-1], int):
        raise Unsupported("a tensor that is real or complex at run time only")
    real_result = inverse and onesided
    length: Dim = size if size is not None else (own - 1) * 2 if real_result else own
    half = dim_floordiv(length, 2) + 1
    used = (
        own if size is None and not real_result else dim_min(own, half if real_result else length)
    )
    x = slice_axis(context, x, axis, 0, used)
    order = [position for position in range(rank - 1) if position != axis] + [axis]
    places = [order.index(position) for position in range(rank - 1)]
    parts = [
        transpose(context, reshape(context, slice_axis(context, cast(context, x, "f64"), rank - 1, index, 1),
                                   context.shape_of(x)[:-1]), order)
        for index in range(2 if context.shape_of(x)[-1] == 2 else 1)
    ]  # fmt: skip
    columns = half if onesided and not inverse else length
    cos, sin = _matrices(context, used, columns, length)
    if inverse:
        count = cast(context, size_scalar(context, length), "f64")
        weight = context.add("reciprocal", count)
        if real_result:
            weight = _hermitian(context, used, length, weight)
        cos, sin = (
            context.add("mul", cos, weight),
            context.add("neg", context.add("mul", sin, weight)),
        )

    def product(part: int, matrix: int) -> int:
        return context.add("matmul", part, matrix)

    real, imaginary = product(parts[0], cos), context.add("neg", product(parts[0], sin))
    if len(parts) > 1:
        real = context.add("add", real, product(parts[1], sin))
        imaginary = context.add("add", imaginary, product(parts[1], cos))
    results = [
        transpose(context, part, places) for part in ((real,) if real_result else (real, imaginary))
    ]
    stacked = [reshape(context, part, (*context.shape_of(part), 1)) for part in results]
    return cast(context, concat(context, stacked, rank - 1), dtype)


def _hermitian(context: OpContext, used: Dim, length: Dim, weight: int) -> int:
    """[used, 1]: twice the weight where the other half of the spectrum mirrors an entry."""
    row = iota(context, used)
    total = size_scalar(context, length)
    twice = context.add("mul", row, context.scalar("i64", 2))
    alone = context.add(
        "logical_or",
        context.add("equal", row, context.scalar("i64", 0)),
        context.add("equal", twice, total),
    )
    one, two = context.scalar("f64", 1), context.scalar("f64", 2)
    return reshape(
        context, context.add("mul", context.add("select", alone, one, two), weight), (used, 1)
    )
