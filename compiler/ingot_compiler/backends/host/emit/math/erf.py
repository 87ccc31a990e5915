"""The error function and the activations made of it.

In: ``Number``. Out: ``Number``. Not done here: tanh.

f32: erf(x) = x * P(x*x) / Q(x*x), minimax fit of degrees 5 and 5 on |x| <= 3.92 (relative error
1.9e-8 before rounding the coefficients). f64: fdlibm's s_erf.c, whose four ranges are all computed
and chosen from.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.host.emit.math.exp import exp
from ingot_compiler.backends.host.emit.number import Number, clamp

_ERF_F32_LIMIT = 3.92  # erf rounds to 1 from here
_ERF_F32_P = (
    2.0500790469668573e-06, 0.00028488339739851654, 0.0037656521890312433, 0.05274882912635803,
    0.19040730595588684, 1.1283791065216064,
)  # fmt: skip
_ERF_F32_Q = (
    3.8091664464445785e-05, 0.0011625437764450908, 0.014969286508858204, 0.11410945653915405,
    0.5020768046379089, 1.0,
)  # fmt: skip
_SQRT_HALF = 0.7071067811865476
_SQRT_2_OVER_PI = 0.7978845608028654
_GELU_CUBE = 0.044715

# fdlibm s_erf.c, the highest power first: pp and qq (|x| < 0.84375), pa and qa (below 1.25), ra and
# sa (below 1/0.35), rb and sb (below 28).
_ERX = 8.45062911510467529297e-01
_PP = (
    -2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
    -3.25042107247001499370e-01, 1.28379167095512558561e-01,
)  # fmt: skip
_QQ = (
    -3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
    6.50222499887672944485e-02, 3.97917223959155352819e-01, 1.0,
)  # fmt: skip
_PA = (
    -2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
    3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01,
    -2.36211856075265944077e-03,
)  # fmt: skip
_QA = (
    1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01,
    7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01, 1.0,
)  # fmt: skip
_RA = (
    -9.81432934416914548592e00, -8.12874355063065934246e01, -1.84605092906711035994e02,
    -1.62396669462573470355e02, -6.23753324503260060396e01, -1.05586262253232909814e01,
    -6.93858572707181764372e-01, -9.86494403484714822705e-03,
)  # fmt: skip
_SA = (
    -6.04244152148580987438e-02, 6.57024977031928170135e00, 1.08635005541779435134e02,
    4.29008140027567833386e02, 6.45387271733267880336e02, 4.34565877475229228821e02,
    1.37657754143519042600e02, 1.96512716674392571292e01, 1.0,
)  # fmt: skip
_RB = (
    -4.83519191608651397019e02, -1.02509513161107724954e03, -6.37566443368389627722e02,
    -1.60636384855821916062e02, -1.77579549177547519889e01, -7.99283237680523006574e-01,
    -9.86494292470009928597e-03,
)  # fmt: skip
_SB = (
    -2.24409524465858183362e01, 4.74528541206955367215e02, 2.55305040643316442583e03,
    3.19985821950859553908e03, 1.53672958608443695994e03, 3.25792512996573918826e02,
    3.03380607434824582924e01, 1.0,
)  # fmt: skip
_LOW_WORD = 0xFFFFFFFF


def erf(x: Number) -> Number:
    """2/sqrt(pi) * integral of exp(-t*t) from 0 to x."""
    return _erf_f64(x) if x.is_double else clamp(_erf_f32(x), -1.0, 1.0)


def _erf_f32(x: Number) -> Number:
    """The rational form, up to 2e-7 beyond 1."""
    x = clamp(x, -_ERF_F32_LIMIT, _ERF_F32_LIMIT)
    t = x * x
    return x * t.polynomial(_ERF_F32_P) / t.polynomial(_ERF_F32_Q)


def gelu_none(x: Number) -> Number:
    """X * Phi(x) (ONNX Gelu-20, approximate "none"); f32: absolute error 1e-6 in the left tail."""
    scaled = x * _SQRT_HALF
    return x * 0.5 * ((_erf_f64(scaled) if x.is_double else _erf_f32(scaled)) + 1.0)


def gelu_tanh(x: Number) -> Number:
    """x/2 * (1 + tanh(u)) with u = sqrt(2/pi) * (x + 0.044715 x**3), as x / (1 + exp(-2u))."""
    u = x * (x * x).fma(_GELU_CUBE, 1.0) * (-2.0 * _SQRT_2_OVER_PI)
    return x / (exp(u) + 1.0)


def _erf_f64(x: Number) -> Number:
    size = x.abs()
    t = x * x
    near = x + x * (t.polynomial(_PP) / t.polynomial(_QQ))
    s = size - 1.0
    middle = s.polynomial(_PA) / s.polynomial(_QA) + _ERX
    # erf rounds to 1 from 6 on; the limit keeps the squares finite.
    far = clamp(size, 1.0, 6.0)
    inverse = 1.0 / (far * far)
    tail = _tail(far, inverse, _RA, _SA)
    farther = _tail(far, inverse, _RB, _SB)
    outside = 1.0 - (far < 1.0 / 0.35).choose(tail, farther) / far
    result = (size < 1.25).choose(middle, outside).with_sign_of(x)
    result = (size < 0.84375).choose(near, result)
    return x.is_nan().choose(x, result)


def _tail(
    x: Number, inverse: Number, numerator: Sequence[float], denominator: Sequence[float]
) -> Number:
    """X * erfc(x): exp(-x*x) is split so that the square of the first part is exact."""
    z = (x.bits() & ~_LOW_WORD).as_float()
    ratio = inverse.polynomial(numerator) / inverse.polynomial(denominator)
    return exp(-z * z - 0.5625) * exp((z - x) * (z + x) + ratio)
