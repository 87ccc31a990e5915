"""Fourier transforms of a length that is a product, by mixed radices: a matrix product for each
factor, and rotations between (Cooley and Tukey 1965).

In: a context, the real and perhaps the imaginary part [.., length] in f64, radices. Out: a spectrum
[.., bins, 1 or 2] in f64. Not done here: how lengths are split (``fourier_radices``), angles
(``fourier_matrices``), scaling.

With n = rest n1 + n2 and k = k1 + radix k2, the transform over n1 gives columns k1, each is turned
by n2 k1 / length, and transforms over n2 give k2. Of a real signal only the columns up to radix / 2
are computed: the others are their mirror images.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ingot_compiler.frontend.build.compose import (
    concat,
    full,
    reshape,
    slice_axis,
    swap_last,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.fourier.fourier_matrices import matrix, rotations
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul


def staged(
    context: OpContext,
    parts: Sequence[int],
    factors: Sequence[int],
    bins: int,
    *,
    inverse: bool,
    results: int,
) -> int:
    """The first ``bins`` of the transform of length prod(factors): their real parts, and the
    imaginary ones when ``results`` is 2."""
    if len(factors) == 1:
        return product(context, parts, bins, factors[0], inverse=inverse, results=results)
    radix, *others = factors
    columns = _stage(context, parts, radix, prod(others), inverse=inverse)
    rest = prod(others)
    below = staged(context, columns, others, rest, inverse=inverse, results=results)
    rank = context.rank_of(below)
    order = (*range(rank - 3), rank - 2, rank - 3, rank - 1)
    rows = _all_columns(context, transpose(context, below, order), radix, -(-bins // radix))
    flat = (*context.shape_of(rows)[:-3], context.shape_of(rows)[-3] * radix, results)
    return slice_axis(context, reshape(context, rows, flat), rank - 3, 0, bins)


def product(
    context: OpContext,
    parts: Sequence[int],
    bins: Dim,
    length: Dim,
    *,
    inverse: bool,
    results: int,
) -> int:
    """The transform as one product: [.., bins, results]."""
    sizes = (context.shape_of(parts[0])[-1], bins, length)
    table = matrix(context, sizes, (len(parts), results), inverse=inverse, interleaved=True)
    y = context.add("matmul", concat(context, parts, context.rank_of(parts[0]) - 1), table)
    return reshape(context, y, (*context.shape_of(y)[:-1], bins, results))


def _stage(
    context: OpContext, parts: Sequence[int], radix: int, rest: int, *, inverse: bool
) -> tuple[int, int]:
    """Transforms over the first of two axes: real and imaginary part [.., columns, rest]."""
    lead = context.shape_of(parts[0])[:-1]
    last = len(lead) + 1
    split = [reshape(context, part, (*lead, radix, rest)) for part in parts]
    x = concat(context, [swap_last(context, part, last - 1) for part in split], last)
    columns = radix // 2 + 1 if len(parts) == 1 else radix
    form = (len(parts), 2)
    sizes = (radix, columns, radix)
    table = matrix(context, sizes, form, inverse=inverse, interleaved=False)
    y = context.add("matmul", x, table)
    halves = [slice_axis(context, y, last, start, columns) for start in (0, columns)]
    cos, sin = rotations(context, rest, columns, radix * rest)
    turned = rotated(context, halves, cos, sin, inverse=inverse)
    real, imaginary = (swap_last(context, part, last - 1) for part in turned)
    return real, imaginary


def rotated(
    context: OpContext, parts: Sequence[int], cos: int, sin: int, *, inverse: bool
) -> tuple[int, int]:
    """(real + i imaginary) (cos - i sin), cos + i sin where ``inverse``; ``parts``: the imaginary
    one is absent from real numbers."""
    sin = context.add("neg", sin) if inverse else sin
    turned = [(context.add("mul", part, cos), context.add("mul", part, sin)) for part in parts]
    if len(turned) == 1:
        return turned[0][0], context.add("neg", turned[0][1])
    (real_cos, real_sin), (imaginary_cos, imaginary_sin) = turned
    return context.add("add", real_cos, imaginary_sin), context.add("sub", imaginary_cos, real_sin)


def padded(context: OpContext, x: int, length: int) -> int:
    """``x`` with zeros behind its last axis, up to ``length``."""
    *lead, own = context.shape_of(x)
    missing = dim_add(length, dim_mul(own, -1))
    if missing == 0:
        return x
    return concat(context, [x, full(context, "f64", 0.0, (*lead, missing))], len(lead))


def _all_columns(context: OpContext, x: int, radix: int, rows: int) -> int:
    """The first rows of [.., rest, columns, parts] with all ``radix`` columns: those missing are
    conjugates of columns before, in reverse, of rows in reverse."""
    rank = context.rank_of(x)
    *_, rest, columns, parts = context.shape_of(x)
    own = slice_axis(context, x, rank - 3, 0, rows)
    missing = radix - columns
    if missing == 0:
        return own
    mirrored = slice_axis(context, x, rank - 3, rest - 1, rows, -1)
    mirrored = slice_axis(context, mirrored, rank - 2, missing, missing, -1)
    if parts == 2:
        mirrored = context.add("mul", mirrored, context.float_vector("f64", (1.0, -1.0)))
    return concat(context, [own, mirrored], rank - 2)
