"""Products of pairs of 16-bit integers, summed to 32 bits: one instruction where the processor has
it.

In: two vectors of pairs. Out: their sums of products, i32 lanes that wrap.
Not done here: the loop (``multiply``).
"""

from __future__ import annotations

from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer

_MULTIPLY_ADD = {  # lanes -> feature ("": every x86-64 has it), intrinsic
    4: ("", "llvm.x86.sse2.pmadd.wd"),
    8: ("avx2", "llvm.x86.avx2.pmadd.wd"),
    16: ("avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
}
_HALF_BITS = 16


def multiply_pairs(writer: Writer, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    """The operands are i32 lanes whose halves are a pair."""
    lanes = left.lanes
    feature, intrinsic = _MULTIPLY_ADD.get(lanes, ("", ""))
    known = writer.target.arch == "x86-64" and intrinsic
    if known and (not feature or feature in writer.target.features):
        halves = [writer.as_lanes(value, "i16", 2 * lanes) for value in (left, right)]
        return writer.call(intrinsic, halves, "i32", lanes)
    low = writer.binary("mul", _low(writer, left), _low(writer, right))
    high = writer.binary("mul", _high(writer, left), _high(writer, right))
    return writer.binary("add", low, high)


def _low(writer: Writer, pairs: LlvmValue) -> LlvmValue:
    by = constant(_HALF_BITS, "i32", pairs.lanes)
    return writer.binary("ashr", writer.binary("shl", pairs, by), by)


def _high(writer: Writer, pairs: LlvmValue) -> LlvmValue:
    return writer.binary("ashr", pairs, constant(_HALF_BITS, "i32", pairs.lanes))
