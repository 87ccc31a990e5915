"""``append(past, new){axis}``: what a caller keeps from call to call, and this call's part behind it.

In: two tensors of one element type, equal but for ``axis``. Out: as ``concat`` of both. It is an op of
its own because the result may lie where the first operand does (``lowering.groups.states``). Not done here:
lowering, finding it in a graph (``passes.hold_state``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.op import CoreOp, Inferred
from ingot_compiler.ir.ops import concat
from ingot_compiler.ir.rules.typing_rules import require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_operands(types, 2, 2)
    return concat.OP.infer(types, attributes)


OP = CoreOp("append", _infer, concat.OP.reference, traits=Trait.MOVEMENT)
