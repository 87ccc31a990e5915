"""ONNX HardSigmoid: alpha * x + beta, limited to [0, 1].

In: a float tensor. Out: core ``mul``, ``add``, ``max``, ``min``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = binary_scalar(context, "mul", context.operand(0), context.float_attribute("alpha", 0.2))
    x = binary_scalar(context, "add", x, context.float_attribute("beta", 0.5))
    return (binary_scalar(context, "min", binary_scalar(context, "max", x, 0), 1),)


OP = OnnxOp("HardSigmoid", _translate)
