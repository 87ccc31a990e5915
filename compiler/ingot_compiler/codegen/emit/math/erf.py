"""The error function.

In: ``Number``. Out: ``Number``. Not done here: the activations made of it (``gelu``).

f32: erf(x) = x * P(x*x) / Q(x*x), minimax fit of degrees 5 and 5 on |x| <= 3.92 (relative error
1.9e-8 before rounding the coefficients). f64: fdlibm's s_erf.c, whose four ranges are all computed
and chosen from.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.math.exp import exp
from ingot_compiler.codegen.emit.number import Number, clamp
from ingot_compiler.lowering.constants.fdlibm import (
    ERF_AT_ONE,
    ERF_FAR,
    ERF_FARTHER,
    ERF_MIDDLE,
    ERF_NEAR,
)

_ERF_F32_LIMIT = 3.92  # erf rounds to 1 from here
_ERF_F32_P = (
    2.0500790469668573e-06, 0.00028488339739851654, 0.0037656521890312433, 0.05274882912635803,
    0.19040730595588684, 1.1283791065216064,
)  # fmt: skip
_ERF_F32_Q = (
    3.8091664464445785e-05, 0.0011625437764450908, 0.014969286508858204, 0.11410945653915405,
    0.5020768046379089, 1.0,
)  # fmt: skip

_LOW_WORD = 0xFFFFFFFF


def erf(x: Number) -> Number:
    """2/sqrt(pi) * integral of exp(-t*t) from 0 to x."""
    found = erf_unbounded(x)
    return found if x.is_double else clamp(found, -1.0, 1.0)


def erf_unbounded(x: Number) -> Number:
    """The error function without a bound: the rational form of f32 is up to 2e-7 beyond 1."""
    if x.is_double:
        return _erf_f64(x)
    x = clamp(x, -_ERF_F32_LIMIT, _ERF_F32_LIMIT)
    t = x * x
    return x * t.polynomial(_ERF_F32_P) / t.polynomial(_ERF_F32_Q)


def _erf_f64(x: Number) -> Number:
    size = x.abs()
    t = x * x
    near = x + x * (_quotient(t, ERF_NEAR))
    s = size - 1.0
    middle = _quotient(s, ERF_MIDDLE) + ERF_AT_ONE
    # erf rounds to 1 from 6 on; the limit keeps the squares finite.
    far = clamp(size, 1.0, 6.0)
    inverse = 1.0 / (far * far)
    tail = _tail(far, _quotient(inverse, ERF_FAR))
    farther = _tail(far, _quotient(inverse, ERF_FARTHER))
    outside = 1.0 - (far < 1.0 / 0.35).choose(tail, farther) / far
    result = (size < 1.25).choose(middle, outside).with_sign_of(x)
    result = (size < 0.84375).choose(near, result)
    return x.is_nan().choose(x, result)


def _quotient(x: Number, series: tuple[Sequence[float], Sequence[float]]) -> Number:
    numerator, denominator = series
    return x.polynomial(numerator) / x.polynomial(denominator)


def _tail(x: Number, ratio: Number) -> Number:
    """X * erfc(x): exp(-x*x) is split so that the square of the first part is exact."""
    z = (x.bits() & ~_LOW_WORD).as_float()
    return exp(-z * z - 0.5625) * exp((z - x) * (z + x) + ratio)
