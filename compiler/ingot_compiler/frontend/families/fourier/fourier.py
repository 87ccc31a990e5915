"""Discrete Fourier transforms along an axis: by mixed radices where the length is known and has
small factors, as a convolution where it has others, and as a product with a matrix of cosines and
sines where it is short or only a run knows it.

In: a context, a tensor [.., 1 or 2]. Out: the transform. Not done here: stages of mixed radices
(``fourier_stages``), the convolution (``fourier_chirp``), angles (``fourier_matrices``).

Sums are f64: terms of a spectrum cancel, and what is left must be small beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    cast,
    iota,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.families.fourier.fourier_chirp import chirped
from ingot_compiler.frontend.families.fourier.fourier_radices import radices
from ingot_compiler.frontend.families.fourier.fourier_stages import padded, product, staged
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min

_PRODUCT_MAX = 256  # a length without small factors that one matrix serves better


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
    order = [position for position in range(rank - 1) if position != axis] + [axis]
    parts = _parts(context, slice_axis(context, x, axis, 0, used), order)
    if inverse:
        weight = _weight(context, used, length, real_result=real_result)
        parts = [context.add("mul", part, weight) for part in parts]
    bins = dim_floordiv(length, 2) + 1 if onesided and not inverse else length
    y = _spectrum(context, parts, length, bins, inverse=inverse, results=1 if real_result else 2)
    places = [*(order.index(position) for position in range(rank - 1)), rank - 1]
    return cast(context, transpose(context, y, places), dtype)


def _spectrum(
    context: OpContext,
    parts: Sequence[int],
    length: Dim,
    bins: Dim,
    *,
    inverse: bool,
    results: int,
) -> int:
    """The transform along the last axis: [.., bins, results]."""
    used = context.shape_of(parts[0])[-1]
    if isinstance(length, int) and isinstance(bins, int) and isinstance(used, int):
        factors = radices(length)
        if len(factors) > 1:
            parts = [padded(context, part, length) for part in parts]
            return staged(context, parts, factors, bins, inverse=inverse, results=results)
        if length > _PRODUCT_MAX:
            return chirped(context, parts, length, bins, inverse=inverse, results=results)
    return product(context, parts, bins, length, inverse=inverse, results=results)


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


def _weight(context: OpContext, used: Dim, length: Dim, *, real_result: bool) -> int:
    """1 / length; twice that where the other half of the spectrum mirrors an entry."""
    weight = context.add("reciprocal", size_scalar(context, length, "f64"))
    return _hermitian(context, used, length, weight) if real_result else weight


def _hermitian(context: OpContext, used: Dim, length: Dim, weight: int) -> int:
    """f64[used]: twice the weight where the other half of the spectrum mirrors an entry."""
    row = iota(context, used)
    total = size_scalar(context, length)
    twice = context.add("mul", row, context.scalar("i64", 2))
    zero = context.scalar("i64", 0)
    ends = context.add("equal", row, zero), context.add("equal", twice, total)
    alone = context.add("logical_or", *ends)
    one, two = context.scalar("f64", 1), context.scalar("f64", 2)
    return context.add("mul", context.add("select", alone, one, two), weight)
