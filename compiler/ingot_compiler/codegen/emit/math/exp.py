"""Exponential functions.

In: ``Number``. Out: ``Number``. Not done here: powers (``power``).

f32: two-step reduction by ln 2, polynomial of degree 6, max 1.0 ulp; with AVX-512 by ln 2 / 16, a
table of 16 powers and degree 3, max 1.06 ulp. f64: reduction as in fdlibm's e_exp.c, max 1 ulp.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.table import TABLE_SIZE, has_table, look_up
from ingot_compiler.codegen.emit.number import Number, clamp
from ingot_compiler.codegen.llvm_value import constant
from ingot_compiler.lowering.constants.fdlibm import EXP_SERIES, LN2_HIGH, LN2_LOW, LOG2E

# Adding 1.5 * 2**(mantissa bits) leaves the rounded integer in the low bits.
MAGIC_F32 = 12582912.0
MAGIC_F32_BITS = 0x4B400000
MAGIC_F64 = 6755399441055744.0
MAGIC_F64_BITS = 0x4338000000000000
_BIAS_F32, _MANTISSA_BITS_F32 = 127, 23
# The high parts have trailing zeros, so that their product with the exponent is exact.
LN2_HIGH_F32 = 0.693359375
LN2_LOW_F32 = -2.12194440e-4

# exp(r) = 1 + r + r*r*q(r) for |r| <= ln(2)/2: minimax fit, relative error 3.1e-9.
_EXP_F32 = (
    0.0013814223930239677,
    0.00836889911442995,
    0.04166840389370918,
    0.1666651964187622,
    0.4999999403953552,
)
# exp(r) = 1 + r + r*r*q(r) for |r| <= ln(2)/32: Taylor, relative error 9.2e-9.
_EXP_SHORT_F32 = (1.0 / 6.0, 0.5)
# 2**r for |r| <= 1/2, and (2**r - 1) / r for |r| <= 1/32: the same in powers of r * ln 2.
_POWER_F32 = (
    0.00015320723468903452,
    0.0013390464009717107,
    0.009618530049920082,
    0.055503617972135544,
    0.24022647738456726,
    0.6931471824645996,
    1.0,
)
_POWER_SHORT_F32 = (0.05550410971045494, 0.24022650718688965, 0.6931471824645996)
# Here 2**n is 0: as bits, and after ``scalef``.
_ZERO_EXPONENT, _ZERO_EXPONENT_AVX512 = -127.0, -200.0
# Weights below are 0: processors of Intel's take a hundred cycles for a product of a denormal,
# which is what -100 in a mask gives (shifted windows: attention in a fifth of the time).
_LEAST_EXPONENT = -125.0


def exp(x: Number) -> Number:
    """E ** x; 0 and inf where the result leaves the range, denormals rounded once."""
    return _exp_f64(x) if x.is_double else _exp_f32(x)


def _exp_f32(x: Number) -> Number:
    return _exp_avx512(x) if has_table(x) else exp_by_polynomial(x)


def exp_by_polynomial(x: Number) -> Number:
    """E ** x in f32 without tables: for formulas that add to its error."""
    # Without the clamp the reduction of -1e30 leaves a remainder as large.
    x = clamp(x, -104.0, 89.0)
    shifted = x.fma(LOG2E, MAGIC_F32)
    n = shifted - MAGIC_F32
    r = n.fma(-LN2_LOW_F32, n.fma(-LN2_HIGH_F32, x))
    p = (r * r).fma(r.polynomial(_EXP_F32), r) + 1.0
    return scale(p, shifted.bits() - MAGIC_F32_BITS)


def _exp_avx512(x: Number) -> Number:
    """2**n * (1 + p), n a multiple of 1/16: its fraction chooses from a table in a register,
    ``scalef`` takes its floor."""
    x = clamp(x, -104.0, 89.0)
    shifted = x.fma(LOG2E, MAGIC_F32 / TABLE_SIZE)
    n = shifted - MAGIC_F32 / TABLE_SIZE
    r = n.fma(-LN2_LOW_F32, n.fma(-LN2_HIGH_F32, x))
    return _from_table(shifted, (r * r).fma(r.polynomial(_EXP_SHORT_F32), r), n)


def _from_table(shifted: Number, p: Number, n: Number) -> Number:
    """2**n * (1 + p); the lowest bits of ``shifted`` are the number of n's fraction."""
    powers = [2.0 ** (number / TABLE_SIZE) for number in range(TABLE_SIZE)]
    power = look_up(powers, shifted.bits())
    return _scale_avx512(power.fma(p, power), n)


def _scale_avx512(x: Number, n: Number) -> Number:
    """X * 2**floor(n) in one instruction, rounded once."""
    w = x.writer
    operands = (x.operand, n.operand, x.operand, constant(-1, "i16"), constant(4, "i32"))
    return Number(w, w.call("llvm.x86.avx512.mask.scalef.ps.512", operands, "float", TABLE_SIZE))


def exp_of_product(x: Number, factor: float) -> Number:
    """E ** (factor * x) in f32 for a positive factor and x from -inf to 0, the weights of a
    softmax: the rounded product is never made. NaN stays; less than 2**-125 becomes 0."""
    base, is_avx512 = factor * LOG2E, has_table(x)
    zero = (_ZERO_EXPONENT_AVX512 if is_avx512 else _ZERO_EXPONENT) / base
    x = (x < _LEAST_EXPONENT / base).choose(zero, x)
    # The lowest bits of the sum are those of 2**n's exponent, or the number of n's sixteenths.
    magic = MAGIC_F32 / TABLE_SIZE if is_avx512 else MAGIC_F32 + _BIAS_F32
    shifted = x.fma(base, magic)
    n = shifted - magic
    r = x.fma(base, -n)
    if is_avx512:
        return _from_table(shifted, r * r.polynomial(_POWER_SHORT_F32), n)
    return r.polynomial(_POWER_F32) * (shifted.bits() << _MANTISSA_BITS_F32).as_float()


def scale(x: Number, n: Number) -> Number:
    """X * 2**n for an integer of the same width; two factors, so that each is a normal number."""
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


def power_of_two(n: Number) -> Number:
    """2**n for an integer within the exponents of normal numbers; the float of the same width."""
    bias, shift = (1023, 52) if n.operand.element == "i64" else (127, 23)
    return ((n + bias) << shift).as_float()


def reduce_f64(x: Number) -> tuple[Number, Number, Number, Number]:
    """X = n*ln 2 + high - low: n as float and as i64, high, low."""
    shifted = x.fma(LOG2E, MAGIC_F64)
    n = shifted - MAGIC_F64
    return n, shifted.bits() - MAGIC_F64_BITS, x - n * LN2_HIGH, n * LN2_LOW


def reduced_minus_one(high: Number, low: Number) -> Number:
    """exp(high - low) - 1 for |high - low| <= ln(2)/2, f64."""
    r = high - low
    t = r * r
    c = r - t * t.polynomial(EXP_SERIES)
    return high - (low - r * c / (2.0 - c))


def _exp_f64(x: Number) -> Number:
    x = clamp(x, -746.0, 710.0)
    _, n, high, low = reduce_f64(x)
    return scale(reduced_minus_one(high, low) + 1.0, n)


def expm1(x: Number) -> Number:
    """exp(x) - 1 without cancellation, f64."""
    x = clamp(x, -40.0, 710.0)
    _, n, high, low = reduce_f64(x)
    # 2**(n-1) is a normal number for every n of the range; the last doubling may overflow to inf.
    half = power_of_two(n - 1)
    return (reduced_minus_one(high, low) * half + (half - 0.5)) * 2.0


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), accurate on both sides: exp of a negative number only."""
    e = exp(-x.abs())
    return (x < 0).choose(e, e.constant(1.0)) / (e + 1.0)


def silu(x: Number) -> Number:
    """X * sigmoid(x)."""
    e = exp(-x.abs())
    return (x < 0).choose(x * e, x) / (e + 1.0)
