"""The offsets at which the loops of a sum read their factors.

In: rounds of loops. Out: ``Offsets``. Not done here: the addresses (``multiply_step``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import Axis, Step
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where a sum reads A and B, in elements from the pointers of its tile."""

    a: LlvmValue
    b: LlvmValue


def moved(w: Writer, start: Offsets, index: LlvmValue, axis: Axis) -> Offsets:
    """Move both offsets by `index` rounds."""
    a = w.add(start.a, w.mul(index, operand(axis.a_step)))
    return Offsets(a, w.add(start.b, w.mul(index, operand(axis.b_step))))


def operand(value: Step) -> LlvmValue:
    """An extent or a step as an i64."""
    return i64(value) if isinstance(value, int) else value
