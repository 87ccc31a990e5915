"""ONNX HardSwish: x * (x / 6 + 1/2 limited to [0, 1]).

In: a float tensor. Out: core ``mul``, ``add``, ``max``, ``min``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    gate = binary_scalar(context, "add", binary_scalar(context, "mul", x, 1 / 6), 0.5)
    gate = binary_scalar(context, "min", binary_scalar(context, "max", gate, 0), 1)
    return (context.add("mul", x, gate),)


OP = OnnxOp("HardSwish", _translate)
