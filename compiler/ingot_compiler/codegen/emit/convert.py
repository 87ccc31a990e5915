"""Casts between dtypes, and between the form in memory and the form in registers.

In: operands with their dtypes. Out: operands. Not done here: f16 and bf16 (``half``), loads and
stores.

Registers hold f16 and bf16 as float and bool as i1. Rounding is to nearest even. Integers wrap.
Everything but 0 (NaN too) is True. A float that does not fit an integer: ONNX leaves it open. As in
``onnx.reference`` on x86-64, i32 and i64 get their least number, also for NaN; 8- and 16-bit
integers keep the low bits of that i32; u32 and u64 are an i32 or i64, the upper half moved down
first.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.codegen.emit.half import (
    double_to_odd_float,
    float_to_half,
    half_to_float,
)
from ingot_compiler.codegen.llvm_value import LlvmValue, constant, element_bits
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import FLOATS, HALVES, LOW_BITS, UNSIGNED, DType

MEMORY: dict[DType, str] = {
    "f32": "float", "f64": "double", "f16": "i16", "bf16": "i16", "bool": "i8",
    "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
    "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64",
    **dict.fromkeys(LOW_BITS, "i8"),
}  # fmt: skip
REGISTER: dict[DType, str] = {**MEMORY, "f16": "float", "bf16": "float", "bool": "i1"}

_TRUNCATIONS = {  # element, lanes of a register -> feature, intrinsic
    ("float", 4): ("ssse3", "llvm.x86.sse2.cvttps2dq"),
    ("float", 8): ("avx", "llvm.x86.avx.cvtt.ps2dq.256"),
    ("float", 16): ("avx512f", "llvm.x86.avx512.mask.cvttps2dq.512"),
    ("double", 4): ("avx", "llvm.x86.avx.cvtt.pd2dq.256"),
    ("double", 8): ("avx512f", "llvm.x86.avx512.mask.cvttpd2dq.512"),
}
_CURRENT_ROUNDING = 4


def compute_dtype(dtype: DType) -> DType:
    """The dtype that functions compute in: f32 for f16 and bf16."""
    return "f32" if dtype in HALVES else dtype


def from_memory(w: Writer, value: LlvmValue, dtype: DType) -> LlvmValue:
    """Widen what was loaded: f16, bf16 to float, bool to i1."""
    if dtype in HALVES:
        return half_to_float(w, value, dtype)
    return w.compare("ne", value, constant(0, "i8", value.lanes)) if dtype == "bool" else value


def to_memory(w: Writer, value: LlvmValue, dtype: DType) -> LlvmValue:
    """Round and narrow a value of ``dtype`` for storing."""
    if dtype in HALVES:
        return w.narrowed.get((value, dtype)) or float_to_half(w, value, dtype)
    return w.convert("zext", value, "i8") if dtype == "bool" else value


def emit_cast(w: Writer, value: LlvmValue, source: DType, target: DType) -> LlvmValue:
    """Convert; ``f16`` and ``bf16`` results are rounded to their type and held as float."""
    if source == target:
        return value
    if target == "bool":
        zero = constant(0, value.element, value.lanes)
        return w.compare("une" if value.is_float else "ne", value, zero)
    if target in FLOATS:
        return rounded(w, _to_float(w, value, source, target), target)
    if source in FLOATS:
        return _float_to_integer(w, value, target)
    return _integer_to_integer(w, value, source, MEMORY[target])


def _integer_to_integer(w: Writer, value: LlvmValue, source: DType, element: str) -> LlvmValue:
    if element_bits(element) < element_bits(value.element):
        return w.convert("trunc", value, element)
    return w.convert("zext" if _is_unsigned(source) else "sext", value, element)


def _is_unsigned(dtype: DType) -> bool:
    return dtype in UNSIGNED or dtype == "bool"


def _to_float(w: Writer, value: LlvmValue, source: DType, target: DType) -> LlvmValue:
    """To double for f64, else to float."""
    element = REGISTER[target]
    if source not in FLOATS:
        return w.convert("uitofp" if _is_unsigned(source) else "sitofp", value, element)
    if value.element == "double" and target in HALVES:
        return double_to_odd_float(w, value)
    return w.convert("fpext" if element == "double" else "fptrunc", value, element)


def rounded(w: Writer, value: LlvmValue, target: DType) -> LlvmValue:
    """Round what a register holds of ``target``, which is a float for f16 and bf16, to its type."""
    if target not in HALVES or (value, target) in w.narrowed:
        return value
    bits = to_memory(w, value, target)
    result = from_memory(w, bits, target)
    w.narrowed[result, target] = bits
    return result


def _float_to_integer(w: Writer, value: LlvmValue, target: DType) -> LlvmValue:
    wide = "i64" if target in ("i64", "u64") else "i32"
    if target not in ("u32", "u64"):
        return w.convert("trunc", _to_signed(w, value, wide), MEMORY[target])
    half = _upper_half(wide, value)
    upper = w.compare("oge", value, half)
    moved = w.select(upper, w.binary("fsub", value, half), value)
    flip = w.select(upper, _least(wide, value.lanes), constant(0, wide, value.lanes))
    return w.binary("xor", _to_signed(w, moved, wide), flip)


def _to_signed(w: Writer, value: LlvmValue, element: str) -> LlvmValue:
    """The least number of ``element`` for what does not fit, NaN too: what x86-64 gives, whose
    instruction LLVM leaves undefined there."""
    by_x86 = _to_i64_by_x86 if element == "i64" else _to_i32_by_x86
    converted = by_x86(w, value) if w.target.arch == "x86-64" else None
    if converted is not None:
        return converted
    least = _least(element, value.lanes)
    saturated = w.call("llvm.fptosi.sat", (value,), element, value.lanes, (least, value))
    fits = w.compare("olt", value, _upper_half(element, value))
    return w.select(fits, saturated, least)


def nearest_integer(w: Writer, value: LlvmValue) -> LlvmValue:
    """The nearest i32, the even one of two, of a float near enough to 0; any for NaN."""
    found = _to_i32_by_x86(w, value, "cvt") if w.target.arch == "x86-64" else None
    return found or _to_signed(w, w.intrinsic("roundeven", value), "i32")


def _to_i32_by_x86(w: Writer, value: LlvmValue, kind: str = "cvtt") -> LlvmValue | None:
    """``cvttps2dq`` where the target has it for so many lanes, ``cvttpd2dq`` for each register of
    doubles; ``cvtps2dq`` and ``cvtpd2dq`` round to the nearest number (``kind`` "cvt")."""
    lanes = value.lanes  # 0: no vector
    if value.element == "double":
        lanes = 8 if "avx512f" in w.target.features and lanes > 4 else 4
    feature, name = _TRUNCATIONS.get((value.element, lanes), ("", ""))
    name = name.replace("cvtt", kind)
    is_whole = value.lanes > 0 and value.lanes % lanes == 0
    if not name or not is_whole or feature not in w.target.features:
        return None
    is_masked = feature == "avx512f"
    return _by_registers(
        w,
        value,
        lanes,
        lambda part: (
            _truncated(w, name, part, "i32") if is_masked else w.call(name, (part,), "i32", lanes)
        ),
    )


def _to_i64_by_x86(w: Writer, value: LlvmValue) -> LlvmValue | None:
    """``vcvttps2qq`` and ``vcvttpd2qq``, for each register of results."""
    if "avx512dq" not in w.target.features or value.lanes not in (8, 16):
        return None
    name = f"llvm.x86.avx512.mask.cvttp{value.element[0].replace('f', 's')}2qq.512"
    return _by_registers(w, value, 8, lambda part: _truncated(w, name, part, "i64"))


def _by_registers(
    w: Writer, value: LlvmValue, lanes: int, convert: Callable[[LlvmValue], LlvmValue]
) -> LlvmValue:
    """A conversion of so many lanes at once, joined again."""
    if value.lanes == lanes:
        return convert(value)
    starts = range(0, value.lanes, lanes)
    parts = [convert(w.shuffle(value, range(start, start + lanes))) for start in starts]
    while len(parts) > 1:
        width = parts[0].lanes
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [w.shuffle(low, range(2 * width), high) for low, high in pairs]
    return parts[0]


def _truncated(w: Writer, name: str, value: LlvmValue, element: str) -> LlvmValue:
    """All lanes by an instruction that takes a mask and a way to round."""
    everywhere, rounding = constant(-1, f"i{value.lanes}"), constant(_CURRENT_ROUNDING, "i32")
    operands = value, constant(0, element, value.lanes), everywhere, rounding
    return w.call(name, operands, element, value.lanes)


def _upper_half(element: str, like: LlvmValue) -> LlvmValue:
    """The first number beyond the signed integers ``element``, as a float of the type of `like`."""
    return constant(2.0 ** (element_bits(element) - 1), like.element, like.lanes)


def _least(element: str, lanes: int) -> LlvmValue:
    return constant(-(1 << (element_bits(element) - 1)), element, lanes)
