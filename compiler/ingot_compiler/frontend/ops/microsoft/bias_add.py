"""ONNX Runtime BiasAdd: x + bias + skip.

In: a float tensor, a bias along its last axis, a residual. Out: core ``add``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    total = context.add("add", context.operand(0), context.operand(1))
    return (context.add("add", total, context.operand(2)),)


OP = OnnxOp("BiasAdd", _translate, signature="X bias skip -> Y")
