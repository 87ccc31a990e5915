"""ONNX Runtime QuickGelu: x * sigmoid(alpha * x).

In: a float tensor. Out: core ``mul``, ``sigmoid``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import scaled
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    alpha = context.float_attribute("alpha", 1.702)
    if alpha == 1.0:
        return (context.add("silu", x),)
    return (context.add("mul", x, context.add("sigmoid", scaled(context, x, alpha))),)


OP = OnnxOp("QuickGelu", _translate, signature="X -> Y; alpha:float")
