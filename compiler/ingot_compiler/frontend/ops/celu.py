"""ONNX Celu: max(0, x) + min(0, alpha * (e^(x / alpha) - 1)).

In: a float tensor. Out: core elementwise ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, alpha = context.operand(0), context.float_attribute("alpha", 1.0)
    power = context.add(
        "exp", binary_scalar(context, "div", binary_scalar(context, "min", x, 0), alpha)
    )
    negative = binary_scalar(context, "mul", binary_scalar(context, "sub", power, 1), alpha)
    positive = binary_scalar(context, "max", x, 0)
    return (context.add("add", positive, binary_scalar(context, "min", negative, 0)),)


OP = OnnxOp("Celu", _translate)
