"""ONNX Runtime GatedAdd: a sum whose second summand each row has a factor for.

In: x and y [.., C], factors [.., 1]. Out: core ``mul``, ``add``. Not done here: factors that are
projected first, which ONNX Runtime has on GPUs alone (refused).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    if context.optional(3) is not None:
        raise Unsupported("a gate_weight")
    x, y, gate = map(context.operand, range(3))
    return (context.add("add", x, context.add("mul", y, gate)),)


OP = OnnxOp("GatedAdd", _translate, signature="X Y gate gate_weight? -> output")
