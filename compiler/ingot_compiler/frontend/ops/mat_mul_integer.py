"""ONNX MatMulInteger: product of 8-bit integers less their zero points.

In: a, b, perhaps zero points. Out: i32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.quantization import along, centred


def product(context: OpContext, a: int, a_zero: int | None, b: int, b_zero: int | None) -> int:
    """i32 product of a - a_zero (per row) and b - b_zero (per column): nine bits, exact in i16."""
    rank_a, rank_b = context.rank_of(a), context.rank_of(b)
    if a_zero is not None and context.rank_of(a_zero) == 1 and rank_a > 1:
        a_zero = along(context, a_zero, a, rank_a - 2)
    if b_zero is not None and context.rank_of(b_zero) == 1 and rank_b > 1:
        b_zero = along(context, b_zero, b, rank_b - 1)
    left, right = centred(context, a, a_zero, "i16"), centred(context, b, b_zero, "i16")
    if rank_a > 1 and rank_b > 1:
        return context.add("matmul_integer", left, right)
    left = unsqueeze(context, left, (0,)) if rank_a == 1 else left
    right = unsqueeze(context, right, (1,)) if rank_b == 1 else right
    result = context.add("matmul_integer", left, right)
    *batch, rows, columns = context.shape_of(result)
    shape = (*batch, *([] if rank_a == 1 else [rows]), *([] if rank_b == 1 else [columns]))
    return context.add("reshape", result, shape=shape)


def _translate(context: OpContext) -> Sequence[int]:
    a, b = context.operand(0), context.operand(1)
    return (product(context, a, context.optional(2), b, context.optional(3)),)


OP = OnnxOp("MatMulInteger", _translate)
