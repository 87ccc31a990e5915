"""Fourier transforms of a length with a large prime factor, as a convolution with a chirp, which is
a product of transforms of a longer length without one (Bluestein 1970).

In: a context, the real and perhaps the imaginary part [.., used] in f64, a length. Out: a spectrum
[.., bins, 1 or 2] in f64. Not done here: the longer transforms (``fourier_stages``), scaling.

With n k = (n n + k k - (k - n) (k - n)) / 2, bin k is a turn by k k / 2 of a sum over n of the
signal, turned by n n / 2, times a turn back by (k - n) (k - n) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    concat,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.fourier.fourier_matrices import cos_sin
from ingot_compiler.frontend.families.fourier.fourier_radices import radices
from ingot_compiler.frontend.families.fourier.fourier_stages import padded, rotated, staged


def chirped(
    context: OpContext,
    parts: Sequence[int],
    length: int,
    bins: int,
    *,
    inverse: bool,
    results: int,
) -> int:
    """The first ``bins`` of the transform of ``length``: their real parts, and the imaginary ones
    when ``results`` is 2."""
    size = convolution_length(length)
    numbers = context.add("iota", dtype="f64", length=size)
    used = context.shape_of(parts[0])[-1]
    assert isinstance(used, int)
    turned = _turned(context, parts, numbers, used, length, inverse=inverse)
    long = [padded(context, part, size) for part in turned]
    summed = _convolved(context, long, numbers, length, bins, inverse=inverse)
    spectrum = _turned(context, summed, numbers, bins, length, inverse=inverse)
    pairs = [reshape(context, part, (*context.shape_of(part), 1)) for part in spectrum[:results]]
    return concat(context, pairs, context.rank_of(pairs[0]) - 1)


def convolution_length(length: int) -> int:
    """At least 2 length - 1, a number of at most 16 times a power of two."""
    least = 2 * length - 1
    bits = max(least.bit_length() - 4, 0)
    return -(-least >> bits) << bits


def _turned(
    context: OpContext,
    parts: Sequence[int],
    numbers: int,
    count: int,
    length: int,
    *,
    inverse: bool,
) -> tuple[int, int]:
    """[.., count], element n turned by n n / 2."""
    cos, sin = _chirp(context, slice_axis(context, numbers, 0, 0, count), length)
    return rotated(context, parts, cos, sin, inverse=inverse)


def _chirp(context: OpContext, numbers: int, length: int) -> tuple[int, int]:
    """Cosine and sine of pi n n / length."""
    square = context.add("mul", numbers, numbers)
    return cos_sin(context, square, size_scalar(context, 2 * length, "f64"))


def _convolved(
    context: OpContext,
    parts: Sequence[int],
    numbers: int,
    length: int,
    bins: int,
    *,
    inverse: bool,
) -> Sequence[int]:
    """The first ``bins`` of the circular convolution with the chirp that turns back.

    Distances from ``length`` on meet nothing but zeros: the chirp has any value there.
    """
    (size,) = context.shape_of(numbers)
    assert isinstance(size, int)
    factors = radices(size)
    from_end = binary_scalar(context, "sub", numbers, float(size))
    distance = context.add("min", numbers, context.add("neg", from_end))
    chirp = [
        binary_scalar(context, "mul", part, 1 / size) for part in _chirp(context, distance, length)
    ]
    chirp[1] = context.add("neg", chirp[1]) if inverse else chirp[1]
    signal, kernel = (
        _split(context, staged(context, each, factors, size, inverse=False, results=2))
        for each in (parts, chirp)
    )
    product = rotated(context, signal, *kernel, inverse=True)
    return _split(context, staged(context, product, factors, bins, inverse=True, results=2))


def _split(context: OpContext, x: int) -> Sequence[int]:
    """Real and imaginary part of [.., 2]."""
    last = context.rank_of(x) - 1
    columns = (slice_axis(context, x, last, index, 1) for index in range(2))
    return [reshape(context, column, context.shape_of(x)[:-1]) for column in columns]
