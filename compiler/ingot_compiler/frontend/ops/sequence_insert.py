"""ONNX SequenceInsert: a sequence with one element more, at a known position or at the end.

In: a sequence, a tensor, perhaps a position. Out: a sequence. Not done here: positions that only a
run knows (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import elements_of, make_sequence, position_of


def _translate(context: OpContext) -> Sequence[int]:
    elements, given = elements_of(context, context.operand(0)), context.optional(2)
    at = len(elements)
    if given is not None:
        at = position_of(context, given, len(elements), to_end=True)
    return (make_sequence(context, (*elements[:at], context.operand(1), *elements[at:])),)


OP = OnnxOp("SequenceInsert", _translate)
