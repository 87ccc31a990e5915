"""f16 and bf16: to float, and from float or double, rounded to nearest even.

In: 16-bit integers as memory holds them, or floats. Out: the other form. Not done here: all other
casts (``convert``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.codegen.llvm_value import LlvmValue, constants
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import DType

_F16_DENORMAL_SCALE = 2.0**112  # 2**(127 - 15): moves an f16 exponent to where f32 keeps it
_BF16_QUIET = 0x40
_SHUFFLED, _ZERO = 8, 0x80  # lanes of 256 bits; the place of a byte that becomes 0
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000


def half_to_float(w: Writer, value: LlvmValue, dtype: DType) -> LlvmValue:
    """Widen f16 or bf16 (i16) to float."""
    # Elsewhere LLVM would call a library function for f16, lane by lane.
    if dtype == "f16" and w.target.widens_f16:
        return w.convert("fpext", w.convert("bitcast", value, "half"), "float")
    if dtype == "bf16" and value.lanes == _SHUFFLED and w.target.shuffles_bytes:
        return _shuffled(w, value)
    wide = Number(w, w.convert("zext", value, "i32"))
    return (_f16_to_float(wide) if dtype == "f16" else (wide << 16).as_float()).operand


def float_to_half(w: Writer, value: LlvmValue, dtype: DType) -> LlvmValue:
    """Round float to f16 or bf16 (i16)."""
    if dtype == "f16" and w.target.widens_f16:
        return w.convert("bitcast", w.convert("fptrunc", value, "half"), "i16")
    rounded = _float_to_f16 if dtype == "f16" else _float_to_bf16
    return w.convert("trunc", rounded(Number(w, value)).operand, "i16")


def _shuffled(w: Writer, value: LlvmValue) -> LlvmValue:
    """The halves of 8 bf16 and zeros below them, by one shuffle of bytes in place of a spread and a
    shift: its operand, twice the same 16 bytes, is what a load gives."""
    twice = w.as_lanes(w.shuffle(value, [*range(_SHUFFLED)] * 2), "i8", 4 * _SHUFFLED)
    rows = ((_ZERO, _ZERO, 2 * lane, 2 * lane + 1) for lane in range(_SHUFFLED))
    places = constants([place for row in rows for place in row], "i8")
    spread = w.call("llvm.x86.avx2.pshuf.b", (twice, places), "i8", 4 * _SHUFFLED)
    return w.as_lanes(spread, "float", _SHUFFLED)


def _f16_to_float(wide: Number) -> Number:
    magnitude = wide & 0x7FFF
    sign = (wide ^ magnitude) << 16
    scaled = ((magnitude << 13).as_float() * _F16_DENORMAL_SCALE).bits()
    special = magnitude.compare("ugt", 0x7BFF)
    return (special.choose(scaled | _INFINITY, scaled) | sign).as_float()


def _float_to_f16(x: Number) -> Number:
    """The bits of the f16, in an i32."""
    bits = x.bits()
    magnitude = bits & _MAGNITUDE
    sign = (bits ^ magnitude).shift_logical(16)
    # Normal results: round the bits; f32 bits of 2**-14 are 0x38800000, the exponents differ by
    # 112.
    odd = magnitude.shift_logical(13) & 1
    normal = (magnitude + odd + (0xFFF - (112 << 23))).shift_logical(13)
    # Denormal results: adding 0.5 aligns the fraction so that the hardware rounds it.
    denormal = (magnitude.as_float() + 0.5).bits() - 0x3F000000
    result = magnitude.compare("ult", 0x38800000).choose(denormal, normal)
    result = magnitude.compare("ugt", 0x477FEFFF).choose(0x7C00, result)
    quiet = (magnitude.shift_logical(13) & 0x1FF) | 0x7E00
    return magnitude.compare("ugt", _INFINITY).choose(quiet, result) | sign


def _float_to_bf16(x: Number) -> Number:
    """The bits of the bf16, in an i32."""
    bits = x.bits()
    high = bits.shift_logical(16)
    rounded = (bits + (high & 1) + 0x7FFF).shift_logical(16)
    quiet = high | _BF16_QUIET
    return x.is_nan().choose(quiet, rounded)


def double_to_odd_float(w: Writer, value: LlvmValue) -> LlvmValue:
    """Round to odd, so that a second rounding to f16 or bf16 gives what one rounding would."""
    x = Number(w, value)
    near = x.to("float")
    back = near.to("double")
    inexact = back.compare("one", x)
    above = back.abs() > x.abs()
    bits = near.bits()
    toward_zero = above.choose(bits - 1, bits)
    return inexact.choose(toward_zero | 1, bits).as_float().operand
