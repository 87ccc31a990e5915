"""ONNX Runtime Range: ONNX's own op, whose step may be absent.

In: start, limit, perhaps a step, each one element. Out: what ONNX's Range gives. Not done here: the
op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    start, delta = context.operand(0), context.optional(2)
    if delta is None:
        delta = context.scalar(context.dtype_of(start), 1)
    return (as_onnx(context, "Range", start, context.operand(1), delta),)


OP = OnnxOp("Range", _translate, signature="start limit delta? -> Y")
