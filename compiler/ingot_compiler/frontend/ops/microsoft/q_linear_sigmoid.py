"""ONNX Runtime QLinearSigmoid: logistic function of a quantised tensor, quantised.

In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised


def _translate(context: OpContext) -> Sequence[int]:
    return (quantised(context, context.add("sigmoid", dequantised(context, 0)), 3),)


OP = OnnxOp(
    "QLinearSigmoid",
    _translate,
    signature="X X_scale X_zero_point? Y_scale Y_zero_point? -> Y",
)
