"""Conversions from and to the low-bit types, composed from ops on their bits: exact, and the same
on every device.

In: a context and value ids. Out: value ids. Not done here: quantization (``quantization``), the
packed form of a file (``tensor_data``).

Numbers are rounded to f32 and then to nearest even, as ``ml_dtypes`` does; e8m0, which has powers
of two alone, by ``Rounding``.
"""

from __future__ import annotations

from math import inf, nan
from typing import Literal

from ingot_compiler.frontend.build.compose import binary_scalar, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import LOW_BITS, DType
from ingot_runtime.lazy_dataclass import dataclass

Rounding = Literal["up", "down", "nearest"]
ROUNDINGS: tuple[Rounding, ...] = ("up", "down", "nearest")

_F32_FRACTION_BITS = 23
_F32_BIAS = 127
_F32_MAGNITUDE = 0x7FFFFFFF
_F32_INFINITY = 0x7F800000


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A sign, an exponent and a fraction. ``greatest``: the bits of the greatest finite number;
    ``infinity``, ``not_a_number``: bits, None where the format has none. ``not_a_number`` beyond
    the magnitudes is what would be -0 (the formats "uz")."""

    exponent_bits: int
    fraction_bits: int
    bias: int
    greatest: int
    infinity: int | None
    not_a_number: int | None

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.exponent_bits + self.fraction_bits)

    @property
    def has_negative_zero(self) -> bool:
        """Whether -0 is a number of its own."""
        return self.not_a_number != self.sign


FORMATS: dict[DType, FloatFormat] = {
    "f8e4m3fn": FloatFormat(4, 3, 7, 0x7E, None, 0x7F),
    "f8e4m3fnuz": FloatFormat(4, 3, 8, 0x7F, None, 0x80),
    "f8e5m2": FloatFormat(5, 2, 15, 0x7B, 0x7C, 0x7E),
    "f8e5m2fnuz": FloatFormat(5, 2, 16, 0x7F, None, 0x80),
    "f4e2m1": FloatFormat(2, 1, 1, 0x7, None, None),
}
INTEGER_BITS: dict[DType, int] = {"i4": 4, "u4": 4, "i2": 2, "u2": 2}


def convert(
    context: OpContext, x: int, dtype: DType, *, saturate: bool = True, rounding: Rounding = "up"
) -> int:
    """``x`` in another element type (ONNX Cast-25), from or to any; ``x`` itself when it has it.

    ``saturate``: what is beyond the greatest number of an 8-bit float becomes that number, also
    infinities; else infinity or NaN. ``rounding``: of results of type e8m0.
    """
    own = context.dtype_of(x)
    if own == dtype:
        return x
    if own in LOW_BITS:
        return convert(
            context, _widened(context, x, own), dtype, saturate=saturate, rounding=rounding
        )
    if dtype not in LOW_BITS:
        return cast(context, x, dtype)
    if dtype in INTEGER_BITS:
        bits = _integer_bits(context, x, INTEGER_BITS[dtype])
    elif dtype == "f8e8m0":
        bits = _exponent(context, cast(context, x, "f32"), rounding, saturate=saturate)
    else:
        bits = _encoded(context, cast(context, x, "f32"), FORMATS[dtype], saturate=saturate)
    return context.add("bit_cast", cast(context, bits, "u8"), dtype=dtype)


def _number(context: OpContext, op: OpName, x: int, value: float) -> int:
    return binary_scalar(context, op, x, value)


def _bits_of(context: OpContext, x: int) -> int:
    return context.add("bit_cast", x, dtype="i32")


def _float_of(context: OpContext, bits: int) -> int:
    return context.add("bit_cast", bits, dtype="f32")


# ---- to wide types -------------------------------------------------------------------------------


def _widened(context: OpContext, x: int, dtype: DType) -> int:
    """The numbers of a low-bit type: i8 or u8 of integers, f32 of floats; all exact."""
    code = context.add("bit_cast", x, dtype="u8")
    if dtype in INTEGER_BITS:
        return _widened_integer(context, code, INTEGER_BITS[dtype], is_signed=dtype[0] == "i")
    wide = cast(context, code, "i32")
    return _power(context, wide) if dtype == "f8e8m0" else _decoded(context, wide, FORMATS[dtype])


def _widened_integer(context: OpContext, code: int, bits: int, *, is_signed: bool) -> int:
    if not is_signed:
        return _number(context, "bitwise_and", code, (1 << bits) - 1)
    upper = _number(context, "shift_left", code, 8 - bits)
    return _number(context, "shift_right", context.add("bit_cast", upper, dtype="i8"), 8 - bits)


def _power(context: OpContext, code: int) -> int:
    """2^(code - 127); 255 is NaN. 2^-127 is no normal f32."""
    normal = _number(context, "shift_left", code, _F32_FRACTION_BITS)
    is_least = _number(context, "equal", code, 0)
    least = context.scalar("i32", 1 << (_F32_FRACTION_BITS - 1))
    power = _float_of(context, context.add("select", is_least, least, normal))
    is_nan = _number(context, "equal", code, 255)
    return context.add("select", is_nan, context.scalar("f32", nan), power)


def _decoded(context: OpContext, code: int, float_format: FloatFormat) -> int:
    """The f32 whose bits in ``float_format`` are the low bits of an i32."""
    magnitude = _number(context, "bitwise_and", code, float_format.sign - 1)
    shifted = _number(
        context, "shift_left", magnitude, _F32_FRACTION_BITS - float_format.fraction_bits
    )
    rebased = _number(
        context, "add", shifted, (_F32_BIAS - float_format.bias) << _F32_FRACTION_BITS
    )
    unit = 2.0 ** (1 - float_format.bias - float_format.fraction_bits)
    denormal = _number(context, "mul", cast(context, magnitude, "f32"), unit)
    is_denormal = _number(context, "less", magnitude, 1 << float_format.fraction_bits)
    value = context.add("select", is_denormal, denormal, _float_of(context, rebased))
    if float_format.infinity is not None:
        value = _where(
            context, _number(context, "equal", magnitude, float_format.infinity), inf, value
        )
    negative = _number(context, "bitwise_and", code, float_format.sign)
    sign = _number(context, "shift_left", negative, 32 - float_format.sign.bit_length())
    signed = _float_of(context, context.add("bitwise_or", _bits_of(context, value), sign))
    if float_format.not_a_number is None:
        return signed
    low = _number(context, "bitwise_and", code, 2 * float_format.sign - 1)
    # Where there are several, their magnitudes are those beyond infinity.
    if float_format.infinity is not None:
        is_nan = context.add("less", context.scalar("i32", float_format.infinity), magnitude)
    else:
        compared = magnitude if float_format.has_negative_zero else low
        is_nan = _number(context, "equal", compared, float_format.not_a_number)
    return _where(context, is_nan, nan, signed)


def _where(context: OpContext, condition: int, value: float, other: int) -> int:
    """``value`` where the condition holds, else ``other``."""
    scalar = context.scalar(context.dtype_of(other), value)
    return context.add("select", condition, scalar, other)


# ---- to low bits ---------------------------------------------------------------------------------


def _integer_bits(context: OpContext, x: int, bits: int) -> int:
    """The low bits of an integer; floats are truncated towards 0."""
    whole = cast(context, x, "i32") if context.dtype_of(x)[0] in "fb" else x
    return _number(context, "bitwise_and", cast(context, whole, "u8"), (1 << bits) - 1)


def _encoded(context: OpContext, x: int, float_format: FloatFormat, *, saturate: bool) -> int:
    """The bits in ``float_format`` of an f32, as an i32."""
    bits = _bits_of(context, x)
    magnitude = _number(context, "bitwise_and", bits, _F32_MAGNITUDE)
    code = _rounded_magnitude(context, magnitude, float_format)
    is_nan = context.add("less", context.scalar("i32", _F32_INFINITY), magnitude)
    too_great = context.add("less", context.scalar("i32", float_format.greatest), code)
    is_kept = saturate or float_format.not_a_number is None
    beyond = (
        float_format.infinity if float_format.infinity is not None else float_format.not_a_number
    )
    instead = float_format.greatest if is_kept or beyond is None else beyond
    code = _where(context, too_great, instead, code)
    if float_format.not_a_number is not None:
        code = _where(context, is_nan, float_format.not_a_number, code)
    shift = 32 - float_format.sign.bit_length()
    sign = _number(
        context, "bitwise_and", _number(context, "shift_right", bits, shift), float_format.sign
    )
    if float_format.not_a_number is None:
        # A NaN is -0: what the type's package makes of it.
        return _where(context, is_nan, float_format.sign, context.add("bitwise_or", code, sign))
    signed = context.add("bitwise_or", code, sign)
    if float_format.has_negative_zero:
        return signed
    is_whole = context.add("logical_or", _number(context, "equal", code, 0), is_nan)
    return context.add("select", is_whole, code, signed)


def _rounded_magnitude(context: OpContext, magnitude: int, float_format: FloatFormat) -> int:
    """The bits of the nearest number without sign and without bound, of the bits of an f32."""
    shift = _F32_FRACTION_BITS - float_format.fraction_bits
    odd = _number(context, "bitwise_and", _number(context, "shift_right", magnitude, shift), 1)
    half = (1 << (shift - 1)) - 1 - ((_F32_BIAS - float_format.bias) << _F32_FRACTION_BITS)
    sum_ = _number(context, "add", context.add("add", magnitude, odd), half)
    normal = _number(context, "shift_right", sum_, shift)
    units = 2.0 ** (float_format.bias - 1 + float_format.fraction_bits)
    count = context.add("round", _number(context, "mul", _float_of(context, magnitude), units))
    least_normal = (_F32_BIAS + 1 - float_format.bias) << _F32_FRACTION_BITS
    is_denormal = _number(context, "less", magnitude, least_normal)
    return context.add("select", is_denormal, cast(context, count, "i32"), normal)


def _exponent(context: OpContext, x: int, rounding: Rounding, *, saturate: bool) -> int:
    """The exponent of |x| as e8m0 has it, as an i32; infinities and NaN are its NaN, 255."""
    magnitude = _number(context, "bitwise_and", _bits_of(context, x), _F32_MAGNITUDE)
    exponent = _number(context, "shift_right", magnitude, _F32_FRACTION_BITS)
    fraction = _number(context, "bitwise_and", magnitude, (1 << _F32_FRACTION_BITS) - 1)
    zero = context.scalar("i32", 0)
    if rounding == "down":
        return exponent
    if rounding == "up":
        is_up = context.add("less", zero, fraction)
    else:
        half = context.scalar("i32", 1 << (_F32_FRACTION_BITS - 1))
        above = context.add("less", half, fraction)
        tie = context.add("equal", half, fraction)
        odd = context.add("less", zero, exponent)
        is_up = context.add("logical_or", above, context.add("logical_and", tie, odd))
    limit = 254 if saturate else 255
    may_grow = _number(context, "less", exponent, limit)
    step = context.add("logical_and", is_up, may_grow)
    return context.add("add", exponent, cast(context, step, "i32"))
