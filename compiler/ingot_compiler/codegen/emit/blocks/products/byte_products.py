"""Products of four 8-bit integers, summed to 32 bits: by one instruction where the processor has
it, else as two pairs of 16-bit integers.

In: vectors of i32, each four bytes, with the signs of both operands. Out: sums that wrap, always
exact. Not done here: the loop (``multiply``).

``vpdpbusd`` multiplies unsigned by signed, ``sdot`` and ``udot`` take two of one kind. Where A does
not have the sign that the instruction asks for beside B, its sign bits are flipped, which adds or
subtracts 128; the sums start at what takes this back (``contraction``), which depends on B alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.blocks.products.pairs import multiply_pairs
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import UNSIGNED, DType
from ingot_compiler.targets.target import Target

_SIGN_BITS = -0x7F7F7F80  # 0x80808080
_LOW_BYTES = 0x00FF00FF
_BYTE_BITS = 8
_X86 = {lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (4, 8, 16)}


def sign_bits(lanes: int) -> LlvmValue:
    """What flips the signs of four bytes; as an operand, the number by which that moves each."""
    return constant(_SIGN_BITS, "i32", lanes)


def flips_signs(target: Target, factors: Factors) -> bool:
    """Whether the signs of A have to be flipped."""
    if factors.together * _BYTE_BITS != 32 or not target.multiplies_bytes:
        return False
    same = (factors.a in UNSIGNED) == (factors.b in UNSIGNED)
    if target.arch == "x86-64":
        return same
    return not same and "i8mm" not in target.features


def flipped(writer: Writer, a: LlvmValue, factors: Factors) -> LlvmValue:
    """A as the instruction takes it."""
    if not flips_signs(writer.target, factors):
        return a
    return writer.binary("xor", a, sign_bits(a.lanes))


def side_by_side(writer: Writer, vectors: Sequence[LlvmValue]) -> LlvmValue:
    """Up to four vectors of bytes as i32 lanes, byte j of a lane from vector j; those that are
    missing are anything."""
    first, second, third, fourth = (vectors[min(at, len(vectors) - 1)] for at in range(4))
    lanes = first.lanes
    if "avx512vbmi" in writer.target.features:
        joined = range(2 * lanes)
        left, right = (
            writer.shuffle(first, joined, second), writer.shuffle(third, joined, fourth),
        )  # fmt: skip
        order = [lane + lanes * at for lane in range(lanes) for at in range(4)]
        return writer.as_lanes(writer.shuffle(left, order, right), "i32", lanes)
    zipped = [lane + lanes * at for lane in range(lanes) for at in range(2)]
    pairs = [
        writer.as_lanes(writer.shuffle(low, zipped, high), "i16", lanes)
        for low, high in ((first, second), (third, fourth))
    ]
    return writer.as_lanes(writer.shuffle(pairs[0], zipped, pairs[1]), "i32", lanes)


def add_byte_products(
    writer: Writer, left: LlvmValue, right: LlvmValue, total: LlvmValue, factors: Factors
) -> LlvmValue:
    """``total`` and the four products of each lane; ``left`` is A, flipped if need be."""
    if writer.target.is_scalar:
        return _add_single_bytes(writer, left, right, total, factors)
    if not writer.target.multiplies_bytes:
        return _add_pairs(writer, left, right, total, factors)
    b_unsigned = factors.b in UNSIGNED
    if writer.target.arch == "x86-64":
        first, second = (right, left) if b_unsigned else (left, right)
        return writer.call(_X86[total.lanes], (total, first, second), "i32", total.lanes)
    return _add_on_arm(writer, left, right, total, factors)


def _add_on_arm(
    writer: Writer, left: LlvmValue, right: LlvmValue, total: LlvmValue, factors: Factors
) -> LlvmValue:
    a_unsigned, b_unsigned = factors.a in UNSIGNED, factors.b in UNSIGNED
    mixed = a_unsigned != b_unsigned and not flips_signs(writer.target, factors)
    name = "usdot" if mixed else "udot" if b_unsigned else "sdot"
    # The instruction takes a lane of its second operand; for `usdot` of its first LLVM knows another.
    first, second = (left, right) if mixed and a_unsigned else (right, left)
    lanes = total.lanes
    operands = [writer.as_lanes(value, "i8", 4 * lanes) for value in (first, second)]
    return writer.call(
        f"llvm.aarch64.neon.{name}.v{lanes}i32.v{4 * lanes}i8", (total, *operands), "i32", lanes
    )


def _add_single_bytes(
    writer: Writer, left: LlvmValue, right: LlvmValue, total: LlvmValue, factors: Factors
) -> LlvmValue:
    """Byte after byte."""
    for at in range(factors.together):
        by = constant(_BYTE_BITS * at, "i32", total.lanes)
        bytes_ = (
            writer.convert(
                "zext" if dtype in UNSIGNED else "sext",
                writer.convert("trunc", writer.binary("lshr", value, by), "i8"),
                "i32",
            )
            for value, dtype in ((left, factors.a), (right, factors.b))
        )
        total = writer.binary("add", writer.binary("mul", *bytes_), total)
    return total


def _add_pairs(
    writer: Writer, left: LlvmValue, right: LlvmValue, total: LlvmValue, factors: Factors
) -> LlvmValue:
    """The even bytes as one pair of 16-bit integers, the odd ones as another."""
    halves = zip(_widened(writer, left, factors.a), _widened(writer, right, factors.b), strict=True)
    for a, b in halves:
        total = writer.binary("add", multiply_pairs(writer, a, b), total)
    return total


def _widened(writer: Writer, value: LlvmValue, dtype: DType) -> tuple[LlvmValue, LlvmValue]:
    """Even and odd bytes of i32 lanes as pairs."""
    lanes = value.lanes
    if dtype in UNSIGNED:
        low = constant(_LOW_BYTES, "i32", lanes)
        moved = writer.binary("lshr", value, constant(_BYTE_BITS, "i32", lanes))
        return writer.binary("and", value, low), writer.binary("and", moved, low)
    halves, by = writer.as_lanes(value, "i16", 2 * lanes), constant(_BYTE_BITS, "i16", 2 * lanes)
    even = writer.binary("ashr", writer.binary("shl", halves, by), by)
    odd = writer.binary("ashr", halves, by)
    return writer.as_lanes(even, "i32", lanes), writer.as_lanes(odd, "i32", lanes)
