"""Products of two bf16, summed to f32 by one instruction.

In: vectors of i32, each two bf16. Out: sums, rounded as ``lowering.loops.bf16_pairs`` says. Not done here:
the loop (``multiply``).
"""

from __future__ import annotations

from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.errors import InternalError


def add_bf16_products(
    writer: Writer, left: LlvmValue, right: LlvmValue, total: LlvmValue
) -> LlvmValue:
    """``total`` and the two products of each lane.

    Raises:
        InternalError: the target has no such instruction.
    """
    if not writer.target.multiplies_bf16:
        raise InternalError("no products of bf16", why=f"{writer.target} does not multiply them")
    lanes = total.lanes
    factors = [writer.as_lanes(value, "bfloat", 2 * lanes) for value in (left, right)]
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    if writer.target.arch == "aarch64":
        name = f"llvm.aarch64.neon.bfdot.v{lanes}f32.v{2 * lanes}bf16"
        factors.reverse()  # the second one may be a lane of a register
    return writer.call(name, (total, *factors), "float", lanes)


def pairs_of_bf16(writer: Writer, words: LlvmValue) -> LlvmValue:
    """The bf16 of a vector of i32, any pair of which may become the factor of all lanes.

    LLVM sees that a pair is a lane of a register where the vector has always been one of bf16, and
    makes a load what it likes: the fence, which is no instruction, hides the load.
    """
    name = f"llvm.arithmetic.fence.v{2 * words.lanes}bf16"
    numbers = writer.as_lanes(words, "bfloat", 2 * words.lanes)
    return writer.call(name, (numbers,), "bfloat", 2 * words.lanes)
