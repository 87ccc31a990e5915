"""ONNX Runtime QLinearSoftmax: softmax of a quantised tensor, quantised.

In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers. Not done
here: types (``ir/ops``). ``opset`` says whether it sees a matrix, as ONNX's did before 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised
from ingot_compiler.frontend.ops.softmax import OP as SOFTMAX


def _translate(context: OpContext) -> Sequence[int]:
    opset = context.int_attribute("opset", 13)
    operands = (dequantised(context, 0),)
    (y,) = SOFTMAX.translate(replace(context, operands=operands, opset=opset))
    return (quantised(context, y, 3),)


OP = OnnxOp(
    "QLinearSoftmax",
    _translate,
    signature="X X_scale x_zero_point? y_scale y_zero_point -> Y; axis:int opset!:int",
)
