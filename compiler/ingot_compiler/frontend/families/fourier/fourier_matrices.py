"""Cosines and sines of the angles of discrete Fourier transforms, and matrices of them.

In: a context, sizes. Out: f64 tensors, of sums and products of literals alone where the sizes are
known: they are constants then, the same on every machine. Not done here: what is multiplied.

Angles are reduced before they are rounded. The polynomials take a quarter of the angle, which two
doublings undo: an error of at most 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, concat, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import Dim

_TO_WHOLE = 1.5 * 2**52  # added to a smaller f64 and subtracted again, it leaves a whole number
_TERM_COUNT = 9  # the next one is below 1e-17 up to pi / 4


def rotations(context: OpContext, rows: Dim, columns: Dim, length: Dim) -> tuple[int, int]:
    """f64[rows, columns]: cos and sin of 2 pi row column / length."""
    row = reshape(context, _numbers(context, rows), (rows, 1))
    product = context.add("mul", row, _numbers(context, columns))
    return cos_sin(context, product, size_scalar(context, length, "f64"))


def cos_sin(context: OpContext, numerator: int, length: int) -> tuple[int, int]:
    """Cosine and sine of 2 pi numerator / length, whole numbers below 2**52 in f64."""
    turns = _whole(context, context.add("div", numerator, length))
    rest = context.add("sub", numerator, context.add("mul", turns, length))
    quarter = binary_scalar(context, "mul", context.add("div", rest, length), math.pi / 2)
    square = context.add("mul", quarter, quarter)
    cos = _polynomial(context, square, [math.factorial(2 * i) for i in range(_TERM_COUNT)])
    odd = _polynomial(context, square, [math.factorial(2 * i + 1) for i in range(_TERM_COUNT)])
    return _doubled(context, *_doubled(context, cos, context.add("mul", quarter, odd)))


def matrix(
    context: OpContext,
    sizes: tuple[Dim, Dim, Dim],
    parts: tuple[int, int],
    *,
    inverse: bool,
    interleaved: bool,
) -> int:
    """The matrix of a transform, of ``sizes`` rows, columns, length: f64[p rows, q columns] for
    ``parts`` (p, q), 1 where a side is real. Real parts of all rows come first; those of columns
    alternate with the imaginary parts where ``interleaved``."""
    cos, sin = rotations(context, *sizes)
    negative = context.add("neg", sin)
    lines = ((cos, sin), (negative, cos)) if inverse else ((cos, negative), (sin, cos))
    halves = [
        _beside(context, line[: parts[1]], interleaved=interleaved) for line in lines[: parts[0]]
    ]
    return concat(context, halves, 0)


def _numbers(context: OpContext, count: Dim) -> int:
    return context.add("iota", dtype="f64", length=count)


def _whole(context: OpContext, x: int) -> int:
    """The nearest whole numbers, by additions that every machine rounds equally."""
    return binary_scalar(context, "sub", binary_scalar(context, "add", x, _TO_WHOLE), _TO_WHOLE)


def _polynomial(context: OpContext, square: int, divisors: Sequence[int]) -> int:
    """1 - square / divisors[1] + square**2 / divisors[2] .., by Horner's rule."""
    *others, result = (
        context.scalar("f64", (-1) ** index / divisor) for index, divisor in enumerate(divisors)
    )
    for coefficient in reversed(others):
        result = context.add("add", context.add("mul", result, square), coefficient)
    return result


def _doubled(context: OpContext, cos: int, sin: int) -> tuple[int, int]:
    """Cosine and sine of twice the angle."""
    square = context.add("mul", sin, sin)
    turned = binary_scalar(context, "sub", context.add("add", square, square), 1.0)
    product = context.add("mul", sin, cos)
    return context.add("neg", turned), context.add("add", product, product)


def _beside(context: OpContext, values: Sequence[int], *, interleaved: bool) -> int:
    """Matrices [rows, columns] as one, column by column or one after the other."""
    if not interleaved or len(values) == 1:
        return concat(context, values, 1)
    rows, columns = context.shape_of(values[0])
    pairs = [reshape(context, value, (rows, columns, 1)) for value in values]
    return reshape(context, concat(context, pairs, 2), (rows, columns * len(values)))
