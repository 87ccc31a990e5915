"""ONNX Runtime QLinearMul: product of two quantised tensors, element by element, quantised.

In: a, b, each with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised
from ingot_compiler.frontend.ops.microsoft.q_linear_add import SIGNATURE


def _translate(context: OpContext) -> Sequence[int]:
    product = context.add("mul", dequantised(context, 0), dequantised(context, 3))
    return (quantised(context, product, 6),)


OP = OnnxOp("QLinearMul", _translate, signature=SIGNATURE)
