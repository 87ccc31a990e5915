"""ONNX Softmax: e^x / sum of e^x along an axis.

In: a float tensor. Out: core ``softmax``. Not done here: the matrix form before opset 13
(``softmaxes``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.softmaxes import row_op


def softmax_rows(context: OpContext, x: int, axis: int) -> int:
    """Softmax along one axis."""
    return context.add("softmax", x, axis=axis)


OP = OnnxOp("Softmax", row_op(softmax_rows))
