"""Hyperbolic functions and their inverses.

In: ``Number``. Out: ``Number``. Not done here: exp, log.

f32 tanh: x * P(x*x) / Q(x*x), minimax fit of degrees 4 and 4 on |x| <= 9 (relative error 2.1e-8
before rounding the coefficients). f64: formulas over expm1 and log1p. The others in f32 are
computed in f64 and rounded.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.exp import exp, expm1
from ingot_compiler.codegen.emit.math.log import log, log1p
from ingot_compiler.codegen.emit.number import Number, clamp

_TANH_F32_LIMIT = 9.0
_TANH_F32_P = (
    1.3354651606789503e-08, 2.060907536360901e-05, 0.003495587734505534, 0.13381025195121765, 1.0,
)  # fmt: skip
_TANH_F32_Q = (
    7.776554298288829e-07,
    0.000328563415678218,
    0.025876980274915695,
    0.4671434164047241,
    1.0,
)
_LN2 = 0.6931471805599453
# From here on the smaller of the two terms is lost in rounding.
_LARGE = 2.0**28
_EXP_OVERFLOWS = 709.0


def tanh(x: Number) -> Number:
    """(e**x - e**-x) / (e**x + e**-x)."""
    if x.is_double:
        t = expm1(x.abs() * -2.0)
        return (-t / (t + 2.0)).with_sign_of(x)
    x = clamp(x, -_TANH_F32_LIMIT, _TANH_F32_LIMIT)
    t = x * x
    # The quotient may round to the number above 1.
    return clamp(x * t.polynomial(_TANH_F32_P) / t.polynomial(_TANH_F32_Q), -1.0, 1.0)


def sinh(x: Number) -> Number:
    """(e**x - e**-x) / 2, f64."""
    size = x.abs()
    t = expm1(size)
    near = (t + t / (t + 1.0)) * 0.5
    return (size < _EXP_OVERFLOWS).choose(near, _half_exp(size)).with_sign_of(x)


def cosh(x: Number) -> Number:
    """(e**x + e**-x) / 2, f64."""
    size = x.abs()
    e = exp(size)
    near = e * 0.5 + 0.5 / e
    return (size < _EXP_OVERFLOWS).choose(near, _half_exp(size))


def _half_exp(x: Number) -> Number:
    """e**x / 2 where e**x may overflow."""
    root = exp(x * 0.5)
    return root * 0.5 * root


def asinh(x: Number) -> Number:
    """log(x + sqrt(x*x + 1)), f64."""
    size = x.abs()
    square = size * size
    near = log1p(size + square / ((square + 1.0).intrinsic("sqrt") + 1.0))
    return (size < _LARGE).choose(near, log(size) + _LN2).with_sign_of(x)


def acosh(x: Number) -> Number:
    """log(x + sqrt(x*x - 1)), f64; NaN for x < 1."""
    t = x - 1.0
    near = log1p(t + (t * 2.0 + t * t).intrinsic("sqrt"))
    result = (x < _LARGE).choose(near, log(x) + _LN2)
    return (x < 1.0).choose(float("nan"), result)


def atanh(x: Number) -> Number:
    """log((1 + x) / (1 - x)) / 2, f64; inf at 1, NaN outside."""
    size = x.abs()
    t = size + size
    result = log1p(t / (1.0 - size)) * 0.5
    # 2/0 is inf and so is its logarithm; beyond, the argument is below -1.
    return (size > 1.0).choose(float("nan"), result).with_sign_of(x)
