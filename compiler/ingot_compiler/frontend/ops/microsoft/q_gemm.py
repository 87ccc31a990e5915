"""ONNX Runtime QGemm: alpha * A' B' + C of quantised matrices; quantised where the result has a
scale.

In: a, b, each with scale and zero point; perhaps C of i32, whose scale is alpha times both; perhaps
scale and zero point of the result. Out: 8-bit integers, or f32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reshape, scaled, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, floats, quantised
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    for position in (0, 3):
        if context.rank_of(context.operand(position)) != 2:
            raise OpTypeError("matrices", context.type_of(context.operand(position)))
    transposed = context.bool_attribute("transB")
    a, scale = dequantised(context, 0), context.operand(4)
    axis = 0 if transposed else 1
    b = floats(context, context.operand(3), scale, context.optional(5), axis)
    a = transpose(context, a, (1, 0)) if context.bool_attribute("transA") else a
    b = transpose(context, b, (1, 0)) if transposed else b
    alpha = context.float_attribute("alpha", 1.0)
    y = scaled(context, context.add("matmul", a, b), alpha)
    bias = context.optional(6)
    if bias is not None:
        factor = context.add("mul", reshape(context, context.operand(1), ()), scale)
        wide = context.add("mul", cast(context, bias, "f32"), scaled(context, factor, alpha))
        y = context.add("add", y, wide)
    return (y if context.optional(7) is None else quantised(context, y, 7),)


OP = OnnxOp(
    "QGemm",
    _translate,
    signature="A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point? -> Y; "
    "alpha:float transA:int transB:int",
)
