"""Logarithms.

In: ``Number``. Out: ``Number``. Not done here: powers.

Reduction to m in [sqrt(1/2), sqrt(2)) and the series in s = f / (2 + f) of fdlibm's e_log.c and
e_logf.c: max 1 ulp.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.exp import (
    MAGIC_F64,
    MAGIC_F64_BITS,
    exp,
    exp_by_polynomial,
)
from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.lowering.constants.fdlibm import LN2_HIGH, LN2_LOW, LOG_SERIES

_INFINITY = float("inf")
# fdlibm e_logf.c: the parts of ln 2, and Lg4 to Lg1.
_LN2_HIGH_F32 = 6.9313812256e-01
_LN2_LOW_F32 = 9.0580006145e-06
_LOG_F32 = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)
_SQRT_HALF_F32_BITS = 0x3F3504F3
_SQRT_HALF_F64_BITS = 0x3FE6A09E667F3BCD
_ONE_F32_BITS = 0x3F800000
_ONE_F64_BITS = 0x3FF0000000000000


def log(x: Number) -> Number:
    """Natural logarithm: -inf for 0, NaN for x < 0."""
    k, f = split(x)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    if x.is_double:
        series, high, low = z * z.polynomial(LOG_SERIES), LN2_HIGH, LN2_LOW
    else:
        series, high, low = z * z.polynomial(_LOG_F32), _LN2_HIGH_F32, _LN2_LOW_F32
    result = k * high - ((half_square - (s * (half_square + series) + k * low)) - f)
    return with_special_values(x, result)


def with_special_values(x: Number, result: Number) -> Number:
    """The logarithm of 0, inf, NaN and negative numbers beside ``result`` for the others."""
    # x itself for inf and NaN.
    result = (x < _INFINITY).choose(result, x)
    result = (x < 0).choose(float("nan"), result)
    return x.equals(0).choose(-_INFINITY, result)


def split(x: Number) -> tuple[Number, Number]:
    """X = 2**k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for positive finite x; k as a
    float."""
    double = x.is_double
    tiny = x < (2.0**-1022 if double else 2.0**-126)
    shift = 54 if double else 25
    bits = tiny.choose(x * 2.0**shift, x).bits()
    root, one, width = (
        (_SQRT_HALF_F64_BITS, _ONE_F64_BITS, 52)
        if double
        else (_SQRT_HALF_F32_BITS, _ONE_F32_BITS, 23)
    )
    moved = bits + (one - root)
    k = (moved >> width) - (one >> width)
    m = (moved & ((1 << width) - 1)) + root
    k = tiny.choose(k - shift, k)
    return _exact_float(k), m.as_float() - 1.0


def _exact_float(k: Number) -> Number:
    if k.operand.element == "i64":
        # No vector conversion from i64 before AVX-512.
        return (k + MAGIC_F64_BITS).as_float() - MAGIC_F64
    return Number(k.writer, k.writer.convert("sitofp", k.operand, "float"))


def log1p(x: Number) -> Number:
    """log(1 + x) without cancellation for x > -1: the rounding error of 1 + x is put back."""
    u = x + 1.0
    error = x - (u - 1.0)
    result = log(u) + error / u
    # Where 1 + x is inf there is no error to put back; where it is 1, x is the result.
    result = (u < _INFINITY).choose(result, u)
    return u.equals(1.0).choose(x, result)


def softplus(x: Number) -> Number:
    """log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|))."""
    positive = (x < 0).choose(0.0, x)
    power = exp(-x.abs()) if x.is_double else exp_by_polynomial(-x.abs())
    return positive + log1p(power)
