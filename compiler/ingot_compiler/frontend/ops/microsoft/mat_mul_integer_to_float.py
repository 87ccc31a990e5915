"""ONNX Runtime MatMulIntegerToFloat: product of quantised matrices, as floats.

In: a, b, their scales, perhaps their zero points and a bias. Out: f32. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.quantization import along
from ingot_compiler.frontend.ops.mat_mul_integer import product


def product_of_integers(
    context: OpContext, a: Sequence[int | None], b: Sequence[int | None], bias: int | None
) -> int:
    """The product of ``(integers, scale, zero point)`` twice: i32 times both scales."""
    (x, x_scale, x_zero), (w, w_scale, w_zero) = a, b
    assert x is not None
    assert w is not None
    assert x_scale is not None
    assert w_scale is not None
    total = product(context, x, x_zero, w, w_zero)
    rank = context.rank_of(total)
    last = max(rank - 1, 0)
    rows = along(context, x_scale, total, max(rank - 2, 0))
    factor = context.add("mul", rows, along(context, w_scale, total, last))
    y = context.add("mul", cast(context, total, "f32"), factor)
    return y if bias is None else context.add("add", y, bias)


def _translate(context: OpContext) -> Sequence[int]:
    a, b, a_scale, b_scale = (context.operand(position) for position in range(4))
    left, right = (a, a_scale, context.optional(4)), (b, b_scale, context.optional(5))
    return (product_of_integers(context, left, right, context.optional(6)),)


OP = OnnxOp(
    "MatMulIntegerToFloat",
    _translate,
    signature="A B a_scale b_scale a_zero_point? b_zero_point? bias? -> Y",
)
