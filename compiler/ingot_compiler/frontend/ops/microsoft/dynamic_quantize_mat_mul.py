"""ONNX Runtime DynamicQuantizeMatMul: a product whose first operand is quantised by its own range.

In: a of floats, quantised b with scale, perhaps zero point and bias. Out: f32. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.dynamic_quantize_linear import OP as DYNAMIC_QUANTIZE_LINEAR
from ingot_compiler.frontend.ops.microsoft.mat_mul_integer_to_float import product_of_integers


def _translate(context: OpContext) -> Sequence[int]:
    node = replace(context, operands=(context.operand(0),))
    x, scale, zero = DYNAMIC_QUANTIZE_LINEAR.translate(node)
    b = (context.operand(1), context.operand(2), context.optional(3))
    return (product_of_integers(context, (x, scale, zero), b, context.optional(4)),)


OP = OnnxOp("DynamicQuantizeMatMul", _translate, signature="A B b_scale b_zero_point? bias? -> Y")
