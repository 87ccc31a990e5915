"""ONNX DynamicQuantizeLinear: quantise to u8 by the tensor's own range.

In: a float tensor. Out: u8 tensor, scale, zero point. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ingot_compiler.frontend.build.compose import reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.quantization import rounded


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    zero = context.scalar(context.dtype_of(x), 0)
    low, high = _extreme(context, x, zero, "min"), _extreme(context, x, zero, "max")
    span = context.add("sub", high, low)
    scale = context.add("div", span, context.scalar(context.dtype_of(x), 255))
    # A tensor of zeros: any divisor is right, and 0 / 0 is not.
    one = context.scalar(context.dtype_of(x), 1)
    divisor = context.add("select", context.add("equal", span, zero), one, scale)
    point = rounded(context, context.add("div", context.add("neg", low), divisor), None, "u8")
    return rounded(context, context.add("div", x, divisor), point, "u8"), scale, point


def _extreme(context: OpContext, x: int, zero: int, function: Literal["min", "max"]) -> int:
    """The least or greatest of all elements and 0."""
    found = reduce(context, x, function, range(context.rank_of(x)))
    return context.add(function, found, zero)


OP = OnnxOp("DynamicQuantizeLinear", _translate)
