"""ONNX SequenceAt: one element of a sequence.

In: a sequence, a known position. Out: the tensor. Not done here: positions that only a run knows
(unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import elements_of, position_of


def _translate(context: OpContext) -> Sequence[int]:
    elements = elements_of(context, context.operand(0))
    return (elements[position_of(context, context.operand(1), len(elements))],)


OP = OnnxOp("SequenceAt", _translate)
