"""ONNX LeakyRelu: x where x >= 0, else alpha * x.

In: a float tensor. Out: core ``mul``, ``less``, ``select``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, less_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    scaled = binary_scalar(context, "mul", x, context.float_attribute("alpha", 0.01))
    return (context.add("select", less_scalar(context, x, 0), scaled, x),)


OP = OnnxOp("LeakyRelu", _translate)
