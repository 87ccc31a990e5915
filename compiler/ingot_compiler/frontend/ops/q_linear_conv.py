"""ONNX QLinearConv: convolution of quantised tensors, quantised again.

In: x, w, scales, zero points, perhaps bias. Out: an 8-bit tensor. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.quantization import along, rounded
from ingot_compiler.frontend.ops.conv_integer import convolution


def _translate(context: OpContext) -> Sequence[int]:
    x, w, zero = context.operand(0), context.operand(3), context.operand(7)
    total = convolution(context, x, context.operand(2), w, context.operand(5), context.optional(8))
    scales = [
        along(context, cast(context, context.operand(position), "f32"), total, 1)
        for position in (1, 4, 6)
    ]
    factor = context.add("div", context.add("mul", scales[0], scales[1]), scales[2])
    scaled = context.add("mul", cast(context, total, "f32"), factor)
    return (rounded(context, scaled, along(context, zero, total, 1), context.dtype_of(zero)),)


OP = OnnxOp("QLinearConv", _translate)
