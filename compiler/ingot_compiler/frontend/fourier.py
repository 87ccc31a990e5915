"""Discrete Fourier transforms as products with matrices of cosines and sines, whose angles are
reduced in integers.

In: a context, a tensor [.., 1 or 2]. Out: the transform. Not done here: fast transforms.

Sums are f64: terms of a spectrum cancel, and what is left must be small beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    if not isinstance(context.shape_of(x)[-1], int):
        raise Unsupported("a tensor that is real or complex at run time only")
    real_result = inverse and onesided
    length, used = _length_and_used(context.shape_of(x)[axis], size, real_result=real_result)
    x = slice_axis(context, x, axis, 0, used)
    order = [position for position in range(rank - 1) if position != axis] + [axis]
    parts = _parts(context, x, order)
    columns = dim_floordiv(length, 2) + 1 if onesided and not inverse else length
    cos, sin = _matrices(context, used, columns, length)
    if inverse:
        weight = context.add("reciprocal", size_scalar(context, length, "f64"))
        weight = _hermitian(context, used, length, weight) if real_result else weight
        cos = context.add("mul", cos, weight)
        sin = context.add("neg", context.add("mul", sin, weight))
    real, imaginary = _products(context, parts, cos, sin)
    places = [order.index(position) for position in range(rank - 1)]
    results = (real,) if real_result else (real, imaginary)
    turned = [transpose(context, part, places) for part in results]
    stacked = [reshape(context, part, (*context.shape_of(part), 1)) for part in turned]
    return cast(context, concat(context, stacked, rank - 1), dtype)


def _length_and_used(own: Dim, size: Dim | None, *, real_result: bool) -> tuple[Dim, Dim]:
    """The length of the transform, and how many of the ``own`` elements it takes; a real result
    takes half of a spectrum."""
    if real_result:
        length = (own - 1) * 2 if size is None else size
        return length, dim_min(own, dim_floordiv(length, 2) + 1)
    return (own, own) if size is None else (size, dim_min(own, size))


def _parts(context: OpContext, x: int, order: Sequence[int]) -> list[int]:
    """f64 real and, where it is complex, imaginary part, their axes in ``order``."""
    *shape, count = context.shape_of(x)
    parts: list[int] = []
    for index in range(2 if count == 2 else 1):
        column = slice_axis(context, cast(context, x, "f64"), len(shape), index, 1)
        parts.append(transpose(context, reshape(context, column, shape), order))
    return parts


def _products(context: OpContext, parts: Sequence[int], cos: int, sin: int) -> tuple[int, int]:
    """Real and imaginary part of (parts) * (cos - i sin)."""
    first = parts[0]
    real = context.add("matmul", first, cos)
    imaginary = context.add("neg", context.add("matmul", first, sin))
    if len(parts) > 1:
        real = context.add("add", real, context.add("matmul", parts[1], sin))
        imaginary = context.add("add", imaginary, context.add("matmul", parts[1], cos))
    return real, imaginary


def _hermitian(context: OpContext, used: Dim, length: Dim, weight: int) -> int:
    """[used, 1]: twice the weight where the other half of the spectrum mirrors an entry."""
    row = iota(context, used)
    total = size_scalar(context, length)
    twice = context.add("mul", row, context.scalar("i64", 2))
    zero = context.scalar("i64", 0)
    ends = context.add("equal", row, zero), context.add("equal", twice, total)
    alone = context.add("logical_or", *ends)
    one, two = context.scalar("f64", 1), context.scalar("f64", 2)
    factor = context.add("select", alone, one, two)
    return reshape(context, context.add("mul", factor, weight), (used, 1))
