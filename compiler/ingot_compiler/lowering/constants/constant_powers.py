"""Logarithms and powers of constants.

In: arrays of f64. Out: arrays of f64, with errors of one unit in the last place. Not done here:
other dtypes (``constant_functions``).

Every step is an operation that IEEE 754 rounds correctly, one numpy call each: fdlibm's e_log.c
and e_pow.c, without fused multiply-adds. Special values as in C99.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.lowering.constants.constant_exponentials import Floats, polynomial, shortened
from ingot_compiler.lowering.constants.fdlibm import (
    EXP_SERIES,
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LN2_SHORT,
    LN2_SHORT_REST,
    LOG2_1_5,
    LOG2_SERIES,
    LOG_SERIES,
    SQRT_1_5,
    SQRT_3,
    TWO_THIRDS_LOG2E,
)

_SQRT_HALF = 0.7071067811865476
# Beyond, the power of anything but 1 is 0 or inf.
_EXPONENT_MAX = 2.0**65
_RESULT_LOG2_MAX = 1100.0


def logarithm(x: Floats) -> Floats:
    """The natural logarithm: -inf for 0, NaN for x < 0."""
    usual = (x > 0) & (x < np.inf)
    m, k = np.frexp(np.where(usual, x, 1.0))
    low = m < _SQRT_HALF
    f = np.where(low, m * 2.0, m) - 1.0
    powers = np.where(low, k - 1, k).astype(np.float64)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    series = z * polynomial(z, LOG_SERIES)
    result = powers * LN2_HIGH - (
        (half_square - (s * (half_square + series) + powers * LN2_LOW)) - f
    )
    return np.where(usual, result, np.where(x == 0, -np.inf, np.where(x > 0, np.inf, np.nan)))


def power(base: Floats, exponent: Floats) -> Floats:
    """Base to the power of exponent."""
    size = np.abs(base)
    usual = (size > 0) & (size < np.inf)
    bounded = np.where(
        np.isnan(exponent), 0.0, np.minimum(np.maximum(exponent, -_EXPONENT_MAX), _EXPONENT_MAX)
    )
    result = _power_of_usual(np.where(usual, size, 1.0), bounded)
    rises = (size > 1) ^ (exponent < 0)
    result = np.where(usual, result, np.where(rises, np.inf, 0.0))
    return _with_sign(base, exponent, result)


def _with_sign(base: Floats, exponent: Floats, size: Floats) -> Floats:
    """The power, from the power of |base|."""
    half = exponent * 0.5
    is_integer = exponent == np.trunc(exponent)
    is_odd = is_integer & (half != np.trunc(half))
    result = np.where(np.signbit(base) & is_odd, -size, size)
    undefined = (base < 0) & (base > -np.inf) & ~is_integer
    result = np.where(undefined | np.isnan(base) | np.isnan(exponent), np.nan, result)
    return np.where((exponent == 0) | (base == 1), 1.0, result)


def _power_of_usual(x: Floats, y: Floats) -> Floats:
    """X ** y for positive finite x and bounded y."""
    high, low = _log2(x)
    y_high = shortened(y)
    part_low, part_high = (y - y_high) * high + y * low, y_high * high
    beyond = np.abs(part_high + part_low) > _RESULT_LOG2_MAX
    limit = np.copysign(_RESULT_LOG2_MAX, part_high)
    return _exp2(np.where(beyond, limit, part_high), np.where(beyond, 0.0, part_low))


def _log2(x: Floats) -> tuple[Floats, Floats]:
    """log2 of a positive finite x as a short number and the rest."""
    half, k = np.frexp(x)
    fraction, n = half * 2.0, k - 1
    middle = (fraction > SQRT_1_5) & (fraction < SQRT_3)
    above = fraction >= SQRT_3
    m, whole = np.where(above, half, fraction), np.where(above, n + 1, n).astype(np.float64)
    base = np.where(middle, 1.5, 1.0)
    u, v = m - base, 1.0 / (m + base)
    s = u * v
    s_high, t_high = shortened(s), shortened(m + base)
    t_low = m - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    z = s * s
    r = z * z * polynomial(z, LOG2_SERIES) + s_low * (s_high + s)
    z = s_high * s_high
    t_high = shortened(z + 3.0 + r)
    t_low = r - ((t_high - 3.0) - z)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = shortened(u + v)
    p_low = v - (p_high - u)
    all_of_it, high_part, low_part = TWO_THIRDS_LOG2E
    z_high = p_high * high_part
    z_low = p_high * low_part + p_low * all_of_it + np.where(middle, LOG2_1_5[1], 0.0)
    offset = np.where(middle, LOG2_1_5[0], 0.0)
    high = shortened(((z_high + z_low) + offset) + whole)
    return high, z_low - (((high - whole) - offset) - z_high)


def _exp2(high: Floats, low: Floats) -> Floats:
    """2 ** (high + low)."""
    whole = np.rint(high + low)
    high = high - whole
    t = shortened(high + low)
    u, v = t * LN2_SHORT, (low - (t - high)) * LN2 + t * LN2_SHORT_REST
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * polynomial(t, EXP_SERIES)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    result: Floats = np.ldexp(1.0 - (r - z), whole.astype(np.int64))
    return result
