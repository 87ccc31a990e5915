"""ONNX QLinearMatMul: product of quantised matrices, quantised again.

In: a, b, scales, zero points. Out: an 8-bit tensor. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.quantization import along, rounded
from ingot_compiler.frontend.ops.mat_mul_integer import product


def _scale(context: OpContext, value: int, x: int, axis: int) -> int:
    wide = cast(context, value, "f32")
    if context.rank_of(wide) > 1:
        return wide
    return along(context, wide, x, axis) if context.rank_of(x) > 1 else reshape(context, wide, ())


def _translate(context: OpContext) -> Sequence[int]:
    a, b = context.operand(0), context.operand(3)
    total = product(context, a, context.operand(2), b, context.operand(5))
    rank = context.rank_of(total)
    scales = [
        _scale(context, context.operand(1), total, rank - 2 if rank > 1 else 0),
        _scale(context, context.operand(4), total, rank - 1 if rank else 0),
        _scale(context, context.operand(6), total, rank - 1 if rank else 0),
    ]
    factor = context.add("div", context.add("mul", scales[0], scales[1]), scales[2])
    scaled = context.add("mul", cast(context, total, "f32"), factor)
    zero = context.operand(7)
    offset = (
        zero if context.rank_of(zero) != 1 else along(context, zero, total, rank - 1 if rank else 0)
    )
    dtype = context.dtype_of(zero)
    return (rounded(context, scaled, offset, dtype),)


OP = OnnxOp("QLinearMatMul", _translate)
