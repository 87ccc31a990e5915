"""ONNX LogSoftmax: log of softmax along an axis.

In: a float tensor. Out: core ``log_softmax``. Not done here: the matrix form before opset 13
(``softmaxes``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.softmaxes import row_op


def _rows(context: OpContext, x: int, axis: int) -> int:
    return context.add("log_softmax", x, axis=axis)


OP = OnnxOp("LogSoftmax", row_op(_rows))
