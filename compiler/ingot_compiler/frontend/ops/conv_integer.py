"""ONNX ConvInteger: convolution of 8-bit integers less their zero points.

In: x, w, perhaps zero points. Out: i32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.quantization import along, centred
from ingot_compiler.frontend.ops.conv import OP as CONV


def convolution(
    context: OpContext,
    x: int,
    x_zero: int | None,
    w: int,
    w_zero: int | None,
    bias: int | None = None,
) -> int:
    """i32 convolution. Sums of products of 8-bit integers are exact in f64."""
    x_offset = None if x_zero is None else along(context, x_zero, x, 1)
    w_offset = None if w_zero is None else along(context, w_zero, w, 0)
    operands = [centred(context, x, x_offset, "f64"), centred(context, w, w_offset, "f64")]
    operands += [] if bias is None else [cast(context, bias, "f64")]
    (result,) = CONV.translate(replace(context, operands=tuple(operands)))
    return cast(context, result, "i32")


def _translate(context: OpContext) -> Sequence[int]:
    x, w = context.operand(0), context.operand(1)
    return (convolution(context, x, context.optional(2), w, context.optional(3)),)


OP = OnnxOp("ConvInteger", _translate)
