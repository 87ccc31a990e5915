"""ONNX Runtime QLinearWhere: elements of one of two quantised tensors, quantised.

In: a condition; x, y, each with scale and zero point; scale and zero point of the result. Out:
8-bit integers. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised


def _translate(context: OpContext) -> Sequence[int]:
    x, y = dequantised(context, 1), dequantised(context, 4)
    return (quantised(context, context.add("select", context.operand(0), x, y), 7),)


OP = OnnxOp(
    "QLinearWhere",
    _translate,
    signature="condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point -> Z",
)
