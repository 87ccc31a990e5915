"""Casts between dtypes, and between the form in memory and the form in registers.

In: operands with their dtypes. Out: operands. Not done here: loads and stores.

Registers hold f16 and bf16 as float and bool as i1. Rounding is to nearest even. Integers wrap.
Everything but 0 (NaN too) is True. A float that does not fit an integer: ONNX leaves it open. As in
``onnx.reference`` on x86-64, i32 and i64 get their least number, also for NaN; 8- and 16-bit
integers keep the low bits of that i32; u32 and u64 are an i32 or i64, the upper half moved down
first.
"""

from __future__ import annotations

from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, element_bits, suffix
from ingot_compiler.backends.host.writer import Writer
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType

MEMORY: dict[DType, str] = {
    "f32": "float", "f64": "double", "f16": "i16", "bf16": "i16", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
    "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64", "bool": "i8",
}  # fmt: skip
REGISTER: dict[DType, str] = {**MEMORY, "f16": "float", "bf16": "float", "bool": "i1"}

_F16_DENORMAL_SCALE = 2.0**112  # 2**(127 - 15): moves an f16 exponent to where f32 keeps it
_BF16_QUIET = 0x40


def from_memory(w: Writer, value: LlvmValue, dtype: DType) -> LlvmValue:
    """Widen what was loaded: f16, bf16 to float, bool to i1."""
    if dtype == "f16":
        return _f16_to_float(w, value)
    if dtype == "bf16":
        high = w.binary("shl", w.convert("zext", value, "i32"), constant(16, "i32", value.lanes))
        return w.convert("bitcast", high, "float")
    return w.compare("ne", value, constant(0, "i8", value.lanes)) if dtype == "bool" else value


def to_memory(w: Writer, value: LlvmValue, dtype: DType) -> LlvmValue:
    """Round and narrow a value of ``dtype`` for storing."""
    if dtype == "f16":
        return _float_to_f16(w, value)
    if dtype == "bf16":
        return _float_to_bf16(w, value)
    return w.convert("zext", value, "i8") if dtype == "bool" else value


def emit_cast(w: Writer, value: LlvmValue, source: DType, target: DType) -> LlvmValue:
    """Convert; ``f16`` and ``bf16`` results are rounded to their type and held as float."""
    if source == target:
        return value
    if target == "bool":
        zero = constant(0, value.element, value.lanes)
        return w.compare("une" if value.is_float else "ne", value, zero)
    if target in FLOATS:
        return _round_float(w, _to_float(w, value, source, target), target)
    if source in FLOATS:
        return _float_to_integer(w, value, target)
    return _integer_to_integer(w, value, source, MEMORY[target])


def _integer_to_integer(w: Writer, value: LlvmValue, source: DType, element: str) -> LlvmValue:
    if element_bits(element) < element_bits(value.element):
        return w.convert("trunc", value, element)
    return w.convert("zext" if source in UNSIGNED or source == "bool" else "sext", value, element)


def _to_float(w: Writer, value: LlvmValue, source: DType, target: DType) -> LlvmValue:
    """To double for f64, else to float."""
    element = REGISTER[target]
    if source not in FLOATS:
        return w.convert(
            "uitofp" if source in UNSIGNED or source == "bool" else "sitofp", value, element
        )
    if value.element == "double" and target in ("f16", "bf16"):
        return _double_to_odd_float(w, value)
    return w.convert("fpext" if element == "double" else "fptrunc", value, element)


def _round_float(w: Writer, value: LlvmValue, target: DType) -> LlvmValue:
    return (
        from_memory(w, to_memory(w, value, target), target) if target in ("f16", "bf16") else value
    )


def _double_to_odd_float(w: Writer, value: LlvmValue) -> LlvmValue:
    """Round to odd, so that a second rounding to f16 or bf16 gives what one rounding would."""
    lanes = value.lanes
    near = w.convert("fptrunc", value, "float")
    back = w.convert("fpext", near, "double")
    inexact = w.compare("one", back, value)
    above = w.compare("ogt", w.intrinsic("fabs", back), w.intrinsic("fabs", value))
    bits = w.convert("bitcast", near, "i32")
    toward_zero = w.select(above, w.binary("sub", bits, constant(1, "i32", lanes)), bits)
    odd = w.binary("or", toward_zero, constant(1, "i32", lanes))
    return w.convert("bitcast", w.select(inexact, odd, bits), "float")


def _float_to_integer(w: Writer, value: LlvmValue, target: DType) -> LlvmValue:
    wide = "i64" if target in ("i64", "u64") else "i32"
    if target not in ("u32", "u64"):
        return w.convert("trunc", _to_signed(w, value, wide), MEMORY[target])
    half = constant(2.0 ** (element_bits(wide) - 1), value.element, value.lanes)
    upper = w.compare("oge", value, half)
    moved = w.select(upper, w.binary("fsub", value, half), value)
    flip = w.select(upper, _least(wide, value.lanes), constant(0, wide, value.lanes))
    return w.binary("xor", _to_signed(w, moved, wide), flip)


def _to_signed(w: Writer, value: LlvmValue, element: str) -> LlvmValue:
    """The least number of ``element`` for what does not fit, NaN too."""
    result = LlvmValue("", element, value.lanes)
    saturated = w.call(
        f"llvm.fptosi.sat.{suffix(result)}.{suffix(value)}", (value,), element, value.lanes
    )
    fits = w.compare(
        "olt", value, constant(2.0 ** (element_bits(element) - 1), value.element, value.lanes)
    )
    return w.select(fits, saturated, _least(element, value.lanes))


def _least(element: str, lanes: int) -> LlvmValue:
    return constant(-(1 << (element_bits(element) - 1)), element, lanes)


# ---- half precision ------------------------------------------------------------------------------


def _has_half_conversion(w: Writer) -> bool:
    # Elsewhere LLVM would call a library function, lane by lane.
    return "f16c" in w.target.features or w.target.arch == "aarch64"


def _f16_to_float(w: Writer, value: LlvmValue) -> LlvmValue:
    if _has_half_conversion(w):
        return w.convert("fpext", w.convert("bitcast", value, "half"), "float")
    lanes = value.lanes
    wide = w.convert("zext", value, "i32")
    magnitude = w.binary("and", wide, constant(0x7FFF, "i32", lanes))
    sign = w.binary("shl", w.binary("xor", wide, magnitude), constant(16, "i32", lanes))
    shifted = w.convert("bitcast", w.binary("shl", magnitude, constant(13, "i32", lanes)), "float")
    scaled = w.convert(
        "bitcast", w.binary("fmul", shifted, constant(_F16_DENORMAL_SCALE, "float", lanes)), "i32"
    )
    special = w.compare("ugt", magnitude, constant(0x7BFF, "i32", lanes))
    exponent = w.binary("or", scaled, constant(0x7F800000, "i32", lanes))
    return w.convert("bitcast", w.binary("or", w.select(special, exponent, scaled), sign), "float")


def _float_to_f16(w: Writer, value: LlvmValue) -> LlvmValue:
    if _has_half_conversion(w):
        return w.convert("bitcast", w.convert("fptrunc", value, "half"), "i16")
    lanes = value.lanes
    bits = w.convert("bitcast", value, "i32")
    magnitude = w.binary("and", bits, constant(0x7FFFFFFF, "i32", lanes))
    sign = w.binary("lshr", w.binary("xor", bits, magnitude), constant(16, "i32", lanes))
    # Normal results: round the bits; f32 bits of 2**-14 are 0x38800000, the exponents differ by
    # 112.
    odd = w.binary(
        "and", w.binary("lshr", magnitude, constant(13, "i32", lanes)), constant(1, "i32", lanes)
    )
    biased = w.binary(
        "add", w.binary("add", magnitude, odd), constant(0xFFF - (112 << 23), "i32", lanes)
    )
    normal = w.binary("lshr", biased, constant(13, "i32", lanes))
    # Denormal results: adding 0.5 aligns the fraction so that the hardware rounds it.
    half = constant(0.5, "float", lanes)
    aligned = w.convert(
        "bitcast", w.binary("fadd", w.convert("bitcast", magnitude, "float"), half), "i32"
    )
    denormal = w.binary("sub", aligned, constant(0x3F000000, "i32", lanes))
    result = w.select(
        w.compare("ult", magnitude, constant(0x38800000, "i32", lanes)), denormal, normal
    )
    overflow = w.compare("ugt", magnitude, constant(0x477FEFFF, "i32", lanes))
    result = w.select(overflow, constant(0x7C00, "i32", lanes), result)
    payload = w.binary("lshr", magnitude, constant(13, "i32", lanes))
    quiet = w.binary(
        "or",
        w.binary("and", payload, constant(0x1FF, "i32", lanes)),
        constant(0x7E00, "i32", lanes),
    )
    nan = w.compare("ugt", magnitude, constant(0x7F800000, "i32", lanes))
    return w.convert("trunc", w.binary("or", w.select(nan, quiet, result), sign), "i16")


def _float_to_bf16(w: Writer, value: LlvmValue) -> LlvmValue:
    lanes = value.lanes
    bits = w.convert("bitcast", value, "i32")
    high = w.binary("lshr", bits, constant(16, "i32", lanes))
    odd = w.binary("and", high, constant(1, "i32", lanes))
    biased = w.binary("add", w.binary("add", bits, odd), constant(0x7FFF, "i32", lanes))
    rounded = w.binary("lshr", biased, constant(16, "i32", lanes))
    quiet = w.binary("or", high, constant(_BF16_QUIET, "i32", lanes))
    nan = w.compare("uno", value, value)
    return w.convert("trunc", w.select(nan, quiet, rounded), "i16")
