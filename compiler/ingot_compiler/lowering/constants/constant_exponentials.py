"""Functions of constants that are made of exponentials: powers of e, tanh, erf, activations.

In: arrays of f64. Out: arrays of f64, with errors of one or two units in the last place. Not done
here: other dtypes (``constant_functions``).

Every step is an operation that IEEE 754 rounds correctly, one numpy call each. The formulas are
those of ``codegen.emit.math`` in f64, without fused multiply-adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ingot_compiler.lowering.constants.fdlibm import (
    ERF_AT_ONE,
    ERF_FAR,
    ERF_FARTHER,
    ERF_MIDDLE,
    ERF_NEAR,
    EXP_SERIES,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
)

Floats = npt.NDArray[np.float64]
_LIMIT = 800.0  # beyond it, every result is 0 or infinite
_TERMS = 14
_EXPM1_LEAST = -40.0  # the result rounds to -1
_UPPER_WORD = np.int64(-(1 << 32))


def polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    """Horner's rule, the highest power's coefficient first."""
    total: Floats = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def shortened(x: Floats) -> Floats:
    """The upper 21 bits of the fractions: products of two such numbers are exact."""
    return (np.ascontiguousarray(x).view(np.int64) & _UPPER_WORD).view(np.float64)


def _reduced(x: Floats) -> tuple[Floats, Floats, Floats]:
    """X = powers * ln 2 + high - low."""
    powers: Floats = np.rint(x * LOG2E)
    return powers, x - powers * LN2_HIGH, powers * LN2_LOW


def exponential(x: Floats) -> Floats:
    """E to the power of x."""
    bounded = np.where(np.isnan(x), 0.0, np.minimum(np.maximum(x, -_LIMIT), _LIMIT))
    powers, high, low = _reduced(bounded)
    terms = [1 / math.factorial(number) for number in reversed(range(_TERMS))]
    result = np.ldexp(polynomial(high - low, terms), powers.astype(np.int64))
    return np.where(np.isnan(x), np.nan, result)


def logistic(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    result: Floats = 1.0 / (1.0 + exponential(-x))
    return result


def weighted(x: Floats) -> Floats:
    """X / (1 + exp(-x)), SiLU."""
    return x * logistic(x)


def _exponential_less_one(x: Floats) -> Floats:
    """exp(x) - 1 without cancellation, for x up to 0."""
    powers, high, low = _reduced(np.maximum(x, _EXPM1_LEAST))
    r = high - low
    t = r * r
    c = r - t * polynomial(t, EXP_SERIES)
    reduced = high - (low - r * c / (2.0 - c))
    scale = np.ldexp(np.ones_like(x), powers.astype(np.int64))
    return reduced * scale + (scale - 1.0)


def hyperbolic_tangent(x: Floats) -> Floats:
    """(e**x - e**-x) / (e**x + e**-x)."""
    size = np.where(np.isnan(x), 0.0, np.abs(x))
    t = _exponential_less_one(size * -2.0)
    return np.where(np.isnan(x), np.nan, np.copysign(-t / (t + 2.0), x))


def error_function(x: Floats) -> Floats:
    """2/sqrt(pi) * integral of exp(-t*t) from 0 to x: four ranges, all computed."""
    size = np.where(np.isnan(x), 0.0, np.abs(x))
    far = np.minimum(np.maximum(size, 1.0), 6.0)  # the result rounds to 1 from there on
    inverse = 1.0 / (far * far)
    tail = np.where(
        far < 1.0 / 0.35,
        _tail(far, _quotient(inverse, ERF_FAR)),
        _tail(far, _quotient(inverse, ERF_FARTHER)),
    )
    middle = _quotient(np.minimum(size, 2.0) - 1.0, ERF_MIDDLE) + ERF_AT_ONE
    small = np.minimum(size, 1.0)
    near = small + small * _quotient(small * small, ERF_NEAR)
    result = np.where(size < 1.25, middle, 1.0 - tail / far)
    result = np.where(size < 0.84375, near, result)
    return np.where(np.isnan(x), np.nan, np.copysign(result, x))


def _quotient(x: Floats, series: tuple[Sequence[float], Sequence[float]]) -> Floats:
    numerator, denominator = series
    return polynomial(x, numerator) / polynomial(x, denominator)


def _tail(x: Floats, quotient: Floats) -> Floats:
    """X * erfc(x): exp(-x*x) is split so that the square of the first part is exact."""
    z = shortened(x)
    return exponential(-z * z - 0.5625) * exponential((z - x) * (z + x) + quotient)
