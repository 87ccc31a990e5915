"""ONNX SequenceErase: a sequence without one element, at a known position or the last.

In: a sequence, perhaps a position. Out: a sequence. Not done here: positions that only a run knows
(unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import elements_of, make_sequence, position_of
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    elements, given = elements_of(context, context.operand(0)), context.optional(1)
    require(len(elements) > 0, "a sequence with elements", "an empty one")
    at = len(elements) - 1
    if given is not None:
        at = position_of(context, given, len(elements))
    return (make_sequence(context, (*elements[:at], *elements[at + 1 :])),)


OP = OnnxOp("SequenceErase", _translate)
