"""Inverse trigonometric functions in f64 (f32 is computed in f64 and rounded).

In: ``Number``. Out: ``Number``. Not done here: trigonometric functions.

Reductions and coefficients of fdlibm's s_atan.c, e_asin.c and e_acos.c.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.number import Number

_HALF_PI_HIGH = 1.57079632679489655800e00
_HALF_PI_LOW = 6.12323399573676603587e-17
_PI = 3.14159265358979311600e00
# s_atan.c, aT[10] to aT[0].
_ATAN = (
    1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
    -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
    9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01,
    -1.99999999998764832476e-01, 3.33333333333329318027e-01,
)  # fmt: skip
# Each row: least |x|, atan of the point that is subtracted (high and low part), and a, b, c, d of
# (a*x + b) / (c*x + d).
_ATAN_RANGES = (
    (7.0 / 16, 4.63647609000806093515e-01, 2.26987774529616870924e-17, 2.0, -1.0, 1.0, 2.0),
    (11.0 / 16, 7.85398163397448278999e-01, 3.06161699786838301793e-17, 1.0, -1.0, 1.0, 1.0),
    (19.0 / 16, 9.82793723247329054082e-01, 1.39033110312309984516e-17, 1.0, -1.5, 1.5, 1.0),
    (39.0 / 16, _HALF_PI_HIGH, _HALF_PI_LOW, 0.0, -1.0, 1.0, 0.0),
)
# e_asin.c: pS5 to pS0, qS4 to qS1 and 1.
_ASIN_P = (
    3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
    2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01,
)  # fmt: skip
_ASIN_Q = (
    7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471e00,
    -2.40339491173441421878e00, 1.0,
)  # fmt: skip
_LOW_WORD = 0xFFFFFFFF


def atan(x: Number) -> Number:
    """Inverse tangent, f64."""
    size, zero = x.abs(), x.constant(0.0)
    numerator, denominator, high, low = size, x.constant(1.0), zero, zero
    for least, high_part, low_part, a, b, c, d in _ATAN_RANGES:
        inside = size >= least
        numerator = inside.choose(size * a + b if a else size.constant(b), numerator)
        denominator = inside.choose(size * c + d, denominator)
        high = inside.choose(high_part, high)
        low = inside.choose(low_part, low)
    t = numerator / denominator
    z = t * t
    tail = t * (z * z.polynomial(_ATAN))
    return (high - ((tail - low) - t)).with_sign_of(x)


def asin(x: Number) -> Number:
    """Inverse sine, f64; NaN outside [-1, 1]."""
    size = x.abs()
    near = size + size * _series(size * size)
    far = _HALF_PI_HIGH - (_asin_complement(size) - _HALF_PI_LOW)
    return (size < 0.5).choose(near, far).with_sign_of(x)


def acos(x: Number) -> Number:
    """Inverse cosine, f64; NaN outside [-1, 1]."""
    size = x.abs()
    near = _HALF_PI_HIGH - (x - (_HALF_PI_LOW - x * _series(x * x)))
    twice = _asin_complement(size)
    far = (x < 0).choose(_PI - (twice - 2.0 * _HALF_PI_LOW), twice)
    return (size < 0.5).choose(near, far)


def _series(z: Number) -> Number:
    """(asin(sqrt z) - sqrt z) / sqrt z."""
    return z * z.polynomial(_ASIN_P) / z.polynomial(_ASIN_Q)


def _asin_complement(size: Number) -> Number:
    """pi/2 - asin(size) for size >= 0.5, as 2 asin(sqrt((1 - size) / 2)); NaN for size > 1."""
    z = (1.0 - size) * 0.5
    root = z.intrinsic("sqrt")
    short = (root.bits() & ~_LOW_WORD).as_float()
    both = root + short
    # What short lacks of the exact root; 0/0 at size 1, where nothing is lacking.
    correction = both.equals(0).choose(0.0, (z - short * short) / both)
    return (short + (root * _series(z) + correction)) * 2.0
