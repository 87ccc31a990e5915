"""ONNX Runtime QuantizeLinear: ONNX's, for element types that ONNX's had not yet.

In: a float tensor, a scale, perhaps a zero point. Out: integers. Not done here: the op itself
(``ops/quantize_linear``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.quantize_linear import OP as QUANTIZE_LINEAR

OP = OnnxOp(
    "QuantizeLinear",
    QUANTIZE_LINEAR.translate,
    signature="x y_scale y_zero_point? -> y; axis:int",
)
