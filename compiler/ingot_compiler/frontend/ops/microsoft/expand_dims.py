"""ONNX Runtime ExpandDims: ONNX's Unsqueeze of one axis.

In: a tensor, the axis. Out: what Unsqueeze gives. Not done here: the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import as_vector, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    axis = as_vector(context, cast(context, context.operand(1), "i64"))
    return (as_onnx(context, "Unsqueeze", context.operand(0), axis),)


OP = OnnxOp("ExpandDims", _translate, signature="X axis -> Y")
