"""ONNX Runtime DequantizeLinear: ONNX's, for element types that ONNX's had not yet.

In: integers, a scale, perhaps a zero point. Out: a float tensor. Not done here: the op itself
(``ops/dequantize_linear``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.dequantize_linear import OP as DEQUANTIZE_LINEAR

OP = OnnxOp(
    "DequantizeLinear",
    DEQUANTIZE_LINEAR.translate,
    signature="x x_scale x_zero_point? -> y; axis:int",
)
