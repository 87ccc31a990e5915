"""Inverse trigonometric functions of f32, rounded right but for a hundredth of a unit.

In: ``Number`` of f32. Out: ``Number`` of f32. Not done here: f64, and targets without a fused
multiply-add (``inverse``).

asin(s) = s + s*t*(1/6 + t*q(t)) for s up to 1/2, where t = s*s; beyond, asin(x) is pi/2 - 2 asin(s)
with t = (1 - x)/2, which is exact. What each rounding loses is kept beside (Dekker 1971), so that
lanes of f32 do. q, and the series of the tangent, are interpolated at Chebyshev's points.
"""

from __future__ import annotations

import math

import numpy as np

from ingot_compiler.codegen.emit.math import inverse
from ingot_compiler.codegen.emit.number import Number

_ASIN = (
    2.7716955170035362e-02, 1.2915842235088348e-02, 2.2988272830843925e-02,
    3.0344299972057343e-02, 4.464368522167206e-02, 7.499999552965164e-02,
)  # fmt: skip
# (atan(t) - t) / t**3 in t*t, for t up to tan(pi/8).
_ATAN = (
    5.053892888529084e-02, -8.627167163506454e-02, 1.1071742818242758e-01,
    -1.428417461627734e-01, 1.9999977768211766e-01, -3.3333333281036015e-01,
)  # fmt: skip
_TINY = 1e-30  # nothing beside other roots than 0


def _parts(value: float) -> tuple[float, float]:
    """A number as an f32 and what it lacks."""
    high = float(np.float32(value))
    return high, value - high


_SIXTH = _parts(1 / 6)
# That of pi is twice as much.
_HALF_PI, _HALF_PI_LOW = _parts(math.pi / 2)
_Sum = tuple[Number, Number]  # of two f32 numbers, the second far smaller


def asin(x: Number) -> Number:
    """Inverse sine; NaN outside [-1, 1]."""
    if not x.writer.target.has_fma:
        return inverse.asin(x.to("double")).to("float")
    is_near, found = _asin_of_half(x.abs())
    start = is_near.choose(0.0, x.constant(_HALF_PI))
    return _moved(start, is_near.choose(1.0, x.constant(-2.0)), found).with_sign_of(x)


def acos(x: Number) -> Number:
    """Inverse cosine; NaN outside [-1, 1]."""
    if not x.writer.target.has_fma:
        return inverse.acos(x.to("double")).to("float")
    is_near, found = _asin_of_half(x.abs())
    is_below = x < 0
    start = is_near.choose(_HALF_PI, is_below.choose(2 * _HALF_PI, x.constant(0.0)))
    times = is_near.choose(-1.0, x.constant(2.0))
    return _moved(start, is_below.choose(-times, times), found)


def _asin_of_half(size: Number) -> tuple[Number, _Sum]:
    """Whether a size is below 1/2, and the inverse sine of it, or of the root of (1 - size)/2."""
    is_near = size < 0.5
    square, half = size * size, size.fma(-0.5, 0.5)
    root, zero = half.intrinsic("sqrt"), size.constant(0.0)
    lacking = (-root).fma(root, half) * (0.5 / (root + _TINY))
    t, t_low = is_near.choose(square, half), is_near.choose(size.fma(size, -square), zero)
    s, s_low = is_near.choose(size, root), is_near.choose(zero, lacking)
    q = t.polynomial(_ASIN)
    factor = t.fma(q, _SIXTH[0])
    factor_low = t.fma(q, _SIXTH[0] - factor) + _SIXTH[1]
    cube = s * t
    cube_low = s.fma(t_low, s.fma(t, -cube))
    high = cube.fma(factor, s)
    low = cube.fma(factor_low, cube.fma(factor, s - high))
    return is_near, (high, s_low.fma(t.fma(factor, 1.0), cube_low.fma(factor, low)))


def _moved(start: Number, times: Number, total: _Sum) -> Number:
    """``start + times * total`` for 0, or for pi or half of it, which is larger; times 1 or 2."""
    high = times.fma(total[0], start)
    low = start.fma(_HALF_PI_LOW / _HALF_PI, times.fma(total[0], start - high))
    return high + times.fma(total[1], low)


def atan(x: Number) -> Number:
    """Inverse tangent, in f64 with as many terms as f32 needs."""
    wide = x.to("double")
    size = wide.abs()
    is_middle, is_far = size > math.tan(math.pi / 8), size > math.tan(3 * math.pi / 8)
    above = is_far.choose(-1.0, is_middle.choose(size - 1.0, size))
    below = is_far.choose(size, is_middle.choose(size + 1.0, size.constant(1.0)))
    start = is_far.choose(math.pi / 2, is_middle.choose(math.pi / 4, size.constant(0.0)))
    t = above / below
    z = t * t
    return (start + (t * z).fma(z.polynomial(_ATAN), t)).with_sign_of(wide).to("float")
