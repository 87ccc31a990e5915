"""ONNX Elu: x where x >= 0, else alpha * (e^x - 1).

In: a float tensor. Out: core elementwise ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, less_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    # min(x, 0): the branch that is not taken must not overflow.
    power = context.add("exp", binary_scalar(context, "min", x, 0))
    negative = binary_scalar(
        context,
        "mul",
        binary_scalar(context, "sub", power, 1),
        context.float_attribute("alpha", 1.0),
    )
    return (context.add("select", less_scalar(context, x, 0), negative, x),)


OP = OnnxOp("Elu", _translate)
