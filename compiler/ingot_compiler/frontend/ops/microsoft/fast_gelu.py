"""ONNX Runtime FastGelu: the tanh approximation of Gelu, perhaps of a sum.

In: a float tensor, perhaps a bias along its last axis. Out: core ``add``, ``gelu``. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def fast_gelu(context: OpContext, x: int, bias: int | None) -> int:
    """The approximation for x, or for x + bias."""
    total = x if bias is None else context.add("add", x, bias)
    return context.add("gelu", total, approximate="tanh")


def _translate(context: OpContext) -> Sequence[int]:
    return (fast_gelu(context, context.operand(0), context.optional(1)),)


OP = OnnxOp("FastGelu", _translate, signature="X bias? -> Y")
