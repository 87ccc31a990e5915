"""ONNX Runtime GatherND: ONNX's own op of opset 11.

In: a tensor, indices. Out: what ONNX's GatherND gives. Not done here: the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    return (as_onnx(context, "GatherND", context.operand(0), context.operand(1), opset=11),)


OP = OnnxOp("GatherND", _translate, signature="data indices -> output")
