"""ONNX Runtime Gelu: x * (1 + erf(x / sqrt(2))) / 2.

In: a float tensor. Out: core ``gelu``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    return (context.add("gelu", context.operand(0), approximate="none"),)


OP = OnnxOp("Gelu", _translate, signature="X -> Y")
