"""Products of two bf16, summed to f32 by one instruction.

In: vectors of i32, each two bf16. Out: sums, rounded as ``lowering.bf16_pairs`` says. Not done here:
the loop (``multiply``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.lanes import as_lanes
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.backends.host.writer import Writer
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
    factors = [as_lanes(writer, value, "bfloat", 2 * lanes) for value in (left, right)]
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    return writer.call(name, (total, *factors), "float", lanes)
