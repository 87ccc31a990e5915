"""ONNX Runtime QLinearLeakyRelu: x or alpha * x of a quantised tensor, quantised.

In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised
from ingot_compiler.frontend.ops.leaky_relu import OP as LEAKY_RELU


def _translate(context: OpContext) -> Sequence[int]:
    (y,) = LEAKY_RELU.translate(replace(context, operands=(dequantised(context, 0),)))
    return (quantised(context, y, 3),)


OP = OnnxOp(
    "QLinearLeakyRelu",
    _translate,
    signature="X X_scale X_zero_point? Y_scale Y_zero_point? -> Y; alpha:float",
)
