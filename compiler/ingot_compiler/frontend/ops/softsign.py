"""ONNX Softsign: x / (1 + |x|).

In: a float tensor. Out: core ``abs``, ``add``, ``div``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    return (context.add("div", x, binary_scalar(context, "add", context.add("abs", x), 1)),)


OP = OnnxOp("Softsign", _translate)
