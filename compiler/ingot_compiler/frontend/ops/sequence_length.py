"""ONNX SequenceLength: how many elements a sequence has.

In: a sequence. Out: an i64 that is known. Not done here: lengths that only a run knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import size_scalar
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import elements_of


def _translate(context: OpContext) -> Sequence[int]:
    return (size_scalar(context, len(elements_of(context, context.operand(0)))),)


OP = OnnxOp("SequenceLength", _translate)
