"""ONNX Runtime QLinearAdd: sum of two quantised tensors, quantised.

In: a, b, each with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised

SIGNATURE = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point? -> C"


def _translate(context: OpContext) -> Sequence[int]:
    total = context.add("add", dequantised(context, 0), dequantised(context, 3))
    return (quantised(context, total, 6),)


OP = OnnxOp("QLinearAdd", _translate, signature=SIGNATURE)
