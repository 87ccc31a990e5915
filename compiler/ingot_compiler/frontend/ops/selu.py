"""ONNX Selu: gamma * x where x > 0, else gamma * alpha * (e^x - 1).

In: a float tensor. Out: core elementwise ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, less_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp

_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875  # ONNX Selu-22, defaults


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    power = context.add("exp", binary_scalar(context, "min", x, 0))
    alpha = context.float_attribute("alpha", _ALPHA)
    negative = binary_scalar(context, "mul", binary_scalar(context, "sub", power, 1), alpha)
    value = context.add("select", less_scalar(context, x, 0), negative, x)
    return (binary_scalar(context, "mul", value, context.float_attribute("gamma", _GAMMA)),)


OP = OnnxOp("Selu", _translate)
