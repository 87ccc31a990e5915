"""Powers.

In: operands. Out: operands. Not done here: exp and log.

Special values as in C99's pow. f64: the log2 in two parts of fdlibm's e_pow.c, max 1 ulp. f32:
exp(y * log x) in f64. Integers: repeated squaring that wraps; a negative exponent gives the
reciprocal rounded to 0 (0 for base 0).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.exp import MAGIC_F64, MAGIC_F64_BITS, exp, scale
from ingot_compiler.codegen.emit.math.log import log
from ingot_compiler.codegen.emit.number import Number, Numbers, clamp, while_any
from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType
from ingot_compiler.lowering.constants.fdlibm import (
    EXP_SERIES,
    LN2,
    LN2_SHORT,
    LN2_SHORT_REST,
    LOG2_1_5,
    LOG2_SERIES,
    TWO_THIRDS_LOG2E,
)

_INFINITY = float("inf")
# Beyond, the power of anything but 1 is 0 or inf; products with a logarithm stay finite.
_EXPONENT_MAX = 2.0**65
_RESULT_LOG2_MAX = 1100.0
_LOW_WORD = 0xFFFFFFFF
_WIDTH, _ONE_BITS = 52, 0x3FF0000000000000
_SQRT_1_5_BITS, _SQRT_3_BITS = 0x3FF3988E00000000, 0x3FFBB67A00000000


def power(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """Base ** exponent."""
    base, exponent = (Number(w, operand) for operand in operands)
    if dtype not in FLOATS:
        return _integer_power(dtype, base, exponent).operand
    size = base.abs()
    limited = clamp(exponent, -_EXPONENT_MAX, _EXPONENT_MAX)
    if base.is_double:
        result = _power_f64(size, limited)
    else:
        wide = limited.to("double") * log(size.to("double"))
        result = exp(wide).to("float")
    return _with_sign(base, exponent, result).operand


def _with_sign(base: Number, exponent: Number, size: Number) -> Number:
    """The power, from the power of |base|."""
    half = exponent * 0.5
    is_integer = exponent.equals(exponent.intrinsic("trunc"))
    is_odd = is_integer & half.compare("une", half.intrinsic("trunc"))
    negative = base.bits() < 0
    result = (negative & is_odd).choose(-size, size)
    undefined = (base < 0) & (base > -_INFINITY) & ~is_integer
    result = undefined.choose(float("nan"), result)
    result = base.compare("uno", exponent).choose(float("nan"), result)
    return (exponent.equals(0) | base.equals(1)).choose(1.0, result)


def _integer_power(dtype: DType, base: Number, exponent: Number) -> Number:
    negative = exponent < 0
    left = exponent if dtype in UNSIGNED else negative.choose(0, exponent)

    def square(old: Numbers) -> Numbers:
        total, factor, rest = old
        total = (rest & 1).compare("ne", 0).choose(total * factor, total)
        return total, factor * factor, rest.shift_logical(1)

    start = (base.constant(1), base, left)
    result, *_ = while_any(start, lambda old: old[2].compare("ne", 0), square)
    if dtype in UNSIGNED:
        return result
    sign = (exponent & 1).compare("ne", 0).choose(-1, base.constant(1))
    inverse = base.equals(1).choose(1, base.equals(-1).choose(sign, base.constant(0)))
    return negative.choose(inverse, result)


def _short(x: Number) -> Number:
    """The upper 21 bits of the fraction: products of two such numbers are exact."""
    return (x.bits() & ~_LOW_WORD).as_float()


def _power_f64(x: Number, y: Number) -> Number:
    """X ** y for x >= 0 and bounded y."""
    high, low = _log2(x)
    y_high = _short(y)
    part_low, part_high = (y - y_high) * high + y * low, y_high * high
    beyond = (part_high + part_low).abs() > _RESULT_LOG2_MAX
    limit = part_high.constant(_RESULT_LOG2_MAX).with_sign_of(part_high)
    result = _exp2(beyond.choose(limit, part_high), beyond.choose(0.0, part_low))
    rises = (x > 1) ^ (y < 0)
    special = rises.choose(_INFINITY, x.constant(0.0))
    return (x.equals(0) | x.equals(_INFINITY)).choose(special, result)


def _exponent_and_fraction(x: Number) -> tuple[Number, Number, Number]:
    """X = 2**n * m for positive finite x: n (i64), m, and whether m is next to 1.5, not to 1."""
    tiny = x < 2.0**-1022
    bits = tiny.choose(x * 2.0**53, x).bits()
    fraction = (bits & ((1 << _WIDTH) - 1)) | _ONE_BITS
    near_one, below_root_3 = fraction <= _SQRT_1_5_BITS, fraction < _SQRT_3_BITS
    above = ~near_one & ~below_root_3
    middle = ~near_one & below_root_3
    zero = bits.constant(0)
    n = (bits.shift_logical(_WIDTH) - 1023) - tiny.choose(53, zero) + above.choose(1, zero)
    m = above.choose(fraction - (1 << _WIDTH), fraction).as_float()
    return n, m, middle


def _log2(x: Number) -> tuple[Number, Number]:
    """log2 of a positive finite x as a short number and the rest."""
    n, m, middle = _exponent_and_fraction(x)
    base = middle.choose(1.5, m.constant(1.0))
    u, v = m - base, 1.0 / (m + base)
    s = u * v
    s_high = _short(s)
    t_high = _short(m + base)
    t_low = m - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    z = s * s
    r = z * z * z.polynomial(LOG2_SERIES) + s_low * (s_high + s)
    z = s_high * s_high
    t_high = _short(z + 3.0 + r)
    t_low = r - ((t_high - 3.0) - z)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = _short(u + v)
    p_low = v - (p_high - u)
    z_high = p_high * TWO_THIRDS_LOG2E[1]
    z_low = (
        p_high * TWO_THIRDS_LOG2E[2]
        + p_low * TWO_THIRDS_LOG2E[0]
        + middle.choose(LOG2_1_5[1], m.constant(0.0))
    )
    offset = middle.choose(LOG2_1_5[0], m.constant(0.0))
    whole = (n + MAGIC_F64_BITS).as_float() - MAGIC_F64
    high = _short(((z_high + z_low) + offset) + whole)
    return high, z_low - (((high - whole) - offset) - z_high)


def _exp2(high: Number, low: Number) -> Number:
    """2 ** (high + low)."""
    shifted = high + low + MAGIC_F64
    whole = shifted - MAGIC_F64
    high = high - whole
    t = _short(high + low)
    u, v = t * LN2_SHORT, (low - (t - high)) * LN2 + t * LN2_SHORT_REST
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * t.polynomial(EXP_SERIES)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    return scale(1.0 - (r - z), shifted.bits() - MAGIC_F64_BITS)


def constant_power(w: Writer, dtype: DType, base: LlvmValue, exponent: float) -> LlvmValue | None:
    """X to the 1, 2, 3, -1, 1/2 without a logarithm; None for other exponents. Cubes of f32 are
    rounded once."""
    x = Number(w, base)
    if exponent == 1:
        return base
    if exponent == 2:
        return (x * x).operand
    if exponent == 3:
        if x.operand.element != "float":
            return (x * x * x).operand
        wide = x.to("double")
        return (wide * wide * wide).to("float").operand
    if dtype not in FLOATS:
        return None
    if exponent == 0.5:
        # Unlike sqrt, pow gives +0 for -0 and inf for -inf.
        return x.equals(-_INFINITY).choose(_INFINITY, (x + 0.0).intrinsic("sqrt")).operand
    return (1.0 / x).operand if exponent == -1 else None
