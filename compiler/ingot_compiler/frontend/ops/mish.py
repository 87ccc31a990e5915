"""ONNX Mish: x * tanh(log(1 + e^x)).

In: a float tensor. Out: core ``softplus``, ``tanh``, ``mul``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    return (context.add("mul", x, context.add("tanh", context.add("softplus", x))),)


OP = OnnxOp("Mish", _translate)
