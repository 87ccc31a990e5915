"""ONNX Dropout in inference: the operand itself, and a mask that keeps everything.

In: a tensor. Out: the same value; the mask as a literal. Not done here: training mode (reported as
unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import full
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, training = context.operand(0), context.optional(2)
    if training is not None and context.known_ints(training) != (0,):
        ratio = context.optional(1)
        known_values = None if ratio is None else context.known_values(ratio)
        if known_values is None or known_values.ravel()[:1].tolist() != [0.0]:
            raise Unsupported("training mode, or a mode that is known at run time only")
    if not context.wants(1):
        return (x,)
    dtype = context.dtype_of(x) if context.opset < 10 else "bool"
    return x, full(context, dtype, 1, context.shape_of(x))


OP = OnnxOp("Dropout", _translate, since=7)
