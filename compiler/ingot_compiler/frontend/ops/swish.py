"""ONNX Swish: x * sigmoid(alpha * x).

In: a float tensor. Out: core ``silu`` for alpha = 1, else ``mul``, ``sigmoid``. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, alpha = context.operand(0), context.float_attribute("alpha", 1.0)
    if alpha == 1.0:
        return (context.add("silu", x),)
    return (context.add("mul", x, context.add("sigmoid", binary_scalar(context, "mul", x, alpha))),)


OP = OnnxOp("Swish", _translate)
