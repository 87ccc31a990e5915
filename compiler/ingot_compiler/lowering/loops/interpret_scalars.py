"""Scalar arithmetic of the loop interpreter: every function of ``Apply`` on Python numbers.

In: Python numbers (a float holds any float dtype, already rounded). Out: Python numbers. Not done
here: loops, memory.

Transcendental functions of f32 are computed in f64 and rounded; those of f64 are the C library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.philox import philox
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES
from ingot_compiler.ir.types import FLOATS, LOW_BITS, UNSIGNED, DType, dtype_size_bits

Number = bool | int | float
_INFINITY = math.inf
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def round_to(number: Number, dtype: DType) -> Number:
    """Round or wrap a number to what registers hold of ``dtype``: f16 and bf16 values live in
    f32."""
    if dtype == "bool":
        return bool(number)
    if dtype in FLOATS:
        return float(number) if dtype == "f64" else round_f32(float(number))
    return wrap(int(number), dtype)


def round_f32(number: float) -> float:
    """The nearest f32."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def wrap(number: int, dtype: DType) -> int:
    """The low bits of an integer."""
    bits = dtype_size_bits(dtype)
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if dtype not in UNSIGNED | LOW_BITS and low >> (bits - 1) else low


def bf16_bits(number: float) -> int:
    """Round to bf16 (to nearest even), as 16 bits."""
    single = round_f32(number)
    bits = int(np.float32(single).view(np.uint32))
    if math.isnan(single):
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF


def bf16_number(bits: int) -> float:
    """The number that 16 bits stand for."""
    return float(np.uint32(bits << 16).view(np.float32))


def cast(number: Number, dtype: DType) -> Number:
    """Convert as ``codegen.emit.convert`` says."""
    if dtype == "bool":
        return number != 0
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return float(np.float16(number))
    if dtype == "bf16":
        return bf16_number(bf16_bits(float(number)))
    if dtype in FLOATS or not isinstance(number, float):
        return round_to(number, dtype)
    half = 1 << (63 if dtype in ("i64", "u64") else 31)
    upper = half if dtype in ("u32", "u64") and number >= half else 0
    fits = not math.isnan(number) and -half - 1 < number - upper < half
    return wrap((int(number) - upper if fits else -half) ^ upper, dtype)


def bit_cast(number: Number, dtype: DType, target: DType) -> Number:
    """The number of type ``target`` that has the same bits."""
    (result,) = np.array([number], COMPUTE_DTYPES[dtype]).view(COMPUTE_DTYPES[target]).tolist()
    return float(result) if target in FLOATS else int(result)


def quantize(numbers: Sequence[Number], dtype: DType) -> Number:
    """``(x, scale, zero, low, high)``, each step rounded to f32."""
    x, scale, zero, low, high = map(float, numbers)
    rounded = _round("f32", round_f32(float(_divide("f32", x, scale))))
    moved = _extreme("f32", round_f32(rounded + zero), low, greater=True)
    return cast(float(_extreme("f32", moved, high, greater=False)), dtype)


def _real(function: Callable[[np.float64], np.float64]) -> Callable[[DType, float], float]:
    """A numpy function as one of Python floats; poles give infinities, domain errors NaN."""

    def apply(_: DType, x: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(np.float64(x)))

    return apply


def _divide(dtype: DType, left: float, right: float) -> Number:
    if dtype in FLOATS:
        with np.errstate(all="ignore"):
            return float(np.float64(left) / np.float64(right))
    if right == 0:
        return 0
    quotient = abs(int(left)) // abs(int(right))
    return quotient if (left < 0) == (right < 0) else -quotient


def _fmod(dtype: DType, left: float, right: float) -> Number:
    if dtype not in FLOATS:
        return 0 if right == 0 else int(left) - int(_divide(dtype, left, right)) * int(right)
    if right == 0 or abs(left) == _INFINITY or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def _mod(dtype: DType, left: float, right: float) -> Number:
    if dtype not in FLOATS:
        return 0 if right == 0 else left % right
    rest = float(_fmod(dtype, left, right))
    if rest and (rest < 0) != (right < 0):
        rest += right
    return math.copysign(0.0, right) if rest == 0 else rest


def _power(dtype: DType, base: float, exponent: float) -> Number:
    if dtype in FLOATS:
        with np.errstate(all="ignore"):
            return float(np.power(np.float64(base), np.float64(exponent)))
    if exponent >= 0:
        return pow(int(base), int(exponent), 1 << 64)
    return {1: 1, -1: -1 if int(exponent) % 2 else 1}.get(int(base), 0)


def _extreme(_: DType, left: float, right: float, *, greater: bool) -> Number:
    if math.isnan(left) or math.isnan(right):
        return math.nan
    return max(left, right) if greater else min(left, right)


def _shift(dtype: DType, left: float, right: float, *, to_left: bool) -> Number:
    bits = dtype_size_bits(dtype)
    amount = int(right) if 0 <= right < bits else bits
    return int(left) << amount if to_left else int(left) >> amount


def _sigmoid(_: DType, x: float) -> float:
    e = math.exp(-abs(x))
    return (e if x < 0 else 1.0) / (1.0 + e)


def _softplus(_: DType, x: float) -> float:
    return x if math.isnan(x) else max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _gelu_tanh(_: DType, x: float) -> float:
    with np.errstate(all="ignore"):
        u = np.float64(_SQRT_2_OVER_PI) * (x + 0.044715 * np.float64(x) ** 3)
        return float(x / (1.0 + np.exp(-2.0 * u)))


def _sign(_: DType, x: float) -> Number:
    return x if math.isnan(x) else (x > 0) - (x < 0)


def _round(_: DType, x: float) -> Number:
    return x if math.isnan(x) or abs(x) == _INFINITY else math.copysign(round(x), x)


def _logical(function: Callable[[bool, bool], bool]) -> Callable[[DType, float, float], Number]:
    return lambda _, left, right: function(bool(left), bool(right))


def _bits(function: Callable[[int, int], int]) -> Callable[[DType, float, float], Number]:
    return lambda _, left, right: function(int(left), int(right))


def _never(_: DType, __: float) -> Number:
    return False


UNARY: Mapping[str, Callable[[DType, float], Number]] = {
    "abs": lambda _, x: abs(x),
    "acos": _real(np.arccos),
    "acosh": _real(np.arccosh),
    "asin": _real(np.arcsin),
    "asinh": _real(np.arcsinh),
    "atan": _real(np.arctan),
    "atanh": _real(np.arctanh),
    "bitwise_not": lambda _, x: ~int(x),
    "ceil": _real(np.ceil),
    "cos": _real(np.cos),
    "cosh": _real(np.cosh),
    "erf": lambda _, x: math.erf(x),
    "exp": _real(np.exp),
    "floor": _real(np.floor),
    "gelu_none": lambda _, x: x * 0.5 * (1.0 + math.erf(x * math.sqrt(0.5))),
    "gelu_tanh": _gelu_tanh,
    "isinf": lambda _, x: abs(x) == _INFINITY,
    "isinf_negative": lambda _, x: x == -_INFINITY,
    "isinf_none": _never,
    "isinf_positive": lambda _, x: x == _INFINITY,
    "isnan": lambda _, x: math.isnan(x),
    "log": _real(np.log),
    "logical_not": lambda _, x: not x,
    "neg": lambda _, x: -x,
    "reciprocal": lambda dtype, x: _divide(dtype, 1, x),
    "relu": lambda _, x: x if math.isnan(x) else max(x, 0),
    "round": _round,
    "sigmoid": _sigmoid,
    "sign": _sign,
    "silu": lambda dtype, x: x * _sigmoid(dtype, x),
    "sin": _real(np.sin),
    "sinh": _real(np.sinh),
    "softplus": _softplus,
    "sqrt": _real(np.sqrt),
    "tan": _real(np.tan),
    "tanh": _real(np.tanh),
}
BINARY: Mapping[str, Callable[[DType, float, float], Number]] = {
    "add": lambda _, a, b: a + b,
    "bitwise_and": _bits(lambda a, b: a & b),
    "bitwise_or": _bits(lambda a, b: a | b),
    "bitwise_xor": _bits(lambda a, b: a ^ b),
    "div": _divide,
    "equal": lambda _, a, b: a == b,
    "fmod": _fmod,
    "less": lambda _, a, b: a < b,
    "less_equal": lambda _, a, b: a <= b,
    "logical_and": _logical(lambda a, b: a and b),
    "logical_or": _logical(lambda a, b: a or b),
    "logical_xor": _logical(lambda a, b: a != b),
    "max": lambda dtype, a, b: _extreme(dtype, a, b, greater=True),
    "min": lambda dtype, a, b: _extreme(dtype, a, b, greater=False),
    "mod": _mod,
    "mul": lambda _, a, b: a * b,
    "philox": lambda _, a, b: int(philox(int(a), int(b), lambda x, count: x >> count)),
    "pow": _power,
    "shift_left": lambda dtype, a, b: _shift(dtype, a, b, to_left=True),
    "shift_right": lambda dtype, a, b: _shift(dtype, a, b, to_left=False),
    "sub": lambda _, a, b: a - b,
}


def apply_function(name: str, dtype: DType, arguments: Sequence[Number]) -> Number:
    """``name(arguments)`` for arguments of ``dtype``, not yet rounded to the result's dtype."""
    if len(arguments) == 1:
        return UNARY[name](dtype, arguments[0])
    left, right = arguments
    return BINARY[name](dtype, left, right)
