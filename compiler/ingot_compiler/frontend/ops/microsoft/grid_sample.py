"""ONNX Runtime GridSample: ONNX's own op of opset 16.

In: an image, a grid. Out: what ONNX's GridSample gives. Not done here: the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    operands = [context.operand(0), context.operand(1)]
    return results_of(context, "GridSample", operands, context.attributes, opset=16)


OP = OnnxOp(
    "GridSample",
    _translate,
    signature="X Grid -> Y; align_corners:int mode:string padding_mode:string",
)
