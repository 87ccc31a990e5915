"""GELU in both forms.

In: ``Number``. Out: ``Number``. Not done here: the functions that they are made of.

f32 with AVX-512: max(x, 0) - s * q(s) with s = |x|, where q falls from 1/2 to 0. In each of 16
ranges of s a polynomial of degree 4 fits q, whose coefficients come from tables in registers: no
division, and an absolute error of 2.5e-7. Otherwise: the formulas, with 1.1e-6 in f32.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.erf import erf_unbounded
from ingot_compiler.codegen.emit.math.exp import MAGIC_F32, exp
from ingot_compiler.codegen.emit.math.table import has_table, look_up
from ingot_compiler.codegen.emit.number import Number

_SQRT_HALF = 0.7071067811865476
_SQRT_2_OVER_PI = 0.7978845608028654
_CUBE = 0.044715

_Tables = tuple[tuple[float, ...], ...]
"""Coefficients by power, the highest first, then by range."""

_WIDTH = 0.359375  # of a range of s, around its multiples
_LIMIT = 15.49 * _WIDTH  # where s * q(s) is below 8e-8

# q(s) = erfc(s / sqrt(2)) / 2, fitted at Chebyshev's points of each range.
_NONE: _Tables = (
    (
        -0.0044413107, -0.015953746, -0.022766387, -0.018341005, -0.007957566, 0.0012942728,
        0.0057267724, 0.005856607, 0.0040365267, 0.002155405, 0.0009370837, 0.00033980518,
        0.00010420271, 2.726021e-05, 6.1202677e-06, 1.1842915e-06,
    ),
    (
        0.06718561, 0.05400116, 0.024807084, -0.0058412636, -0.024988897, -0.029333452,
        -0.023690846, -0.014996482, -0.0077942978, -0.0034014264, -0.0012622313, -0.00040147157,
        -0.000110033325, -2.6084752e-05, -5.363516e-06, -9.58584e-07,
    ),
    (
        -4.44981e-05, 0.067200676, 0.110731766, 0.12026631, 0.10204095, 0.07133234,
        0.0420706, 0.021200392, 0.009197289, 0.0034517536, 0.0011244124, 0.0003186727,
        7.8714555e-05, 1.6967988e-05, 3.1953325e-06, 5.2609465e-07,
    ),
    (
        -0.39894128, -0.3739924, -0.30812806, -0.22310601, -0.14197166, -0.0793964,
        -0.03902173, -0.016854515, -0.0063977446, -0.0021341986, -0.00062565634, -0.00016118523,
        -3.6492016e-05, -7.2601847e-06, -1.2693116e-06, -1.9500801e-07,
    ),
    (
        0.5, 0.3596573, 0.2361475, 0.140489, 0.07528798, 0.036177732,
        0.015532074, 0.005941076, 0.0020201376, 0.00060954655, 0.00016297647, 3.8568654e-05,
        8.070984e-06, 1.4923266e-06, 2.4364994e-07, 3.510742e-08,
    ),
)  # fmt: skip
# q(s) = 1 / (1 + exp(2u)) with u = sqrt(2/pi) * (s + 0.044715 s**3), likewise.
_TANH: _Tables = (
    (
        -0.0045418986, -0.016269252, -0.022966085, -0.018096974, -0.007592312, 0.0013024502,
        0.005455629, 0.005677673, 0.0040655895, 0.002254439, 0.0009897437, 0.00034224635,
        9.194161e-05, 1.8881748e-05, 2.915378e-06, 3.327779e-07,
    ),
    (
        0.06753038, 0.054064438, 0.024439154, -0.006180292, -0.024822548, -0.028869897,
        -0.023456836, -0.015120784, -0.008019208, -0.003514785, -0.0012603905, -0.00036376936,
        -8.295106e-05, -1.4666285e-05, -1.9734962e-06, -1.9841589e-07,
    ),
    (
        -4.549823e-05, 0.06745652, 0.1108055, 0.11988947, 0.1015521, 0.07123906,
        0.042396747, 0.02157094, 0.009347194, 0.0034086714, 0.0010285581, 0.00025189572,
        4.9072987e-05, 7.4536924e-06, 8.652913e-07, 7.527091e-08,
    ),
    (
        -0.39894125, -0.37388304, -0.30787086, -0.22295955, -0.14217065, -0.079824515,
        -0.03935031, -0.016908696, -0.0062585725, -0.001964336, -0.00051331945, -0.000109514265,
        -1.8695224e-05, -2.5026086e-06, -2.5744725e-07, -1.994529e-08,
    ),
    (
        0.5, 0.35967124, 0.2362313, 0.14065532, 0.075447366, 0.03621568,
        0.015424847, 0.0057641803, 0.0018633975, 0.0005125329, 0.000117775206, 2.2179855e-05,
        3.3566364e-06, 4.0021206e-07, 3.6855138e-08, 2.5698625e-09,
    ),
)  # fmt: skip


def gelu_none(x: Number) -> Number:
    """X * Phi(x) (ONNX Gelu-20, approximate "none")."""
    if has_table(x):
        return _from_tables(x, _NONE)
    return x * 0.5 * (erf_unbounded(x * _SQRT_HALF) + 1.0)


def gelu_tanh(x: Number) -> Number:
    """x/2 * (1 + tanh(u)) with u = sqrt(2/pi) * (x + 0.044715 x**3), as x / (1 + exp(-2u))."""
    if has_table(x):
        return _from_tables(x, _TANH)
    u = x * (x * x).fma(_CUBE, 1.0) * (-2.0 * _SQRT_2_OVER_PI)
    return x / (exp(u) + 1.0)


def _from_tables(x: Number, tables: _Tables) -> Number:
    """NaN passes by the maximum, and so does what -inf times 0 is; what they look up does not
    matter."""
    size = x.abs()
    s = (size < _LIMIT).choose(size, size.constant(_LIMIT))
    shifted = s.fma(1.0 / _WIDTH, MAGIC_F32)
    rest, number = (shifted - MAGIC_F32).fma(-_WIDTH, s), shifted.bits()
    q = look_up(tables[0], number)
    for table in tables[1:]:
        q = q.fma(rest, look_up(table, number))
    return (-s).fma(q, (x < 0).choose(x * 0.0, x))
