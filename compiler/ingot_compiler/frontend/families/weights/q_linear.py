"""Ops of quantized operands and results (ONNX Runtime's QLinear*): the op on what they stand for,
quantized again. The passes over integers find this form.

In: a context, operands with scales and zero points. Out: value ids. Not done here: which op.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.weights.quantization import along, centred, rounded
from ingot_compiler.ir.types import DType


def dequantized(context: OpContext, first: int) -> int:
    """What operand ``first`` stands for, in f32; scale and perhaps zero point follow it."""
    return floats(
        context, context.operand(first), context.operand(first + 1), context.optional(first + 2)
    )


def floats(context: OpContext, x: int, scale: int, zero: int | None, axis: int = 0) -> int:
    """``(x - zero) * scale`` in f32; parameters that are vectors lie along ``axis``."""
    offset = None if zero is None else along(context, zero, x, axis)
    factor = along(context, cast(context, scale, "f32"), x, axis)
    return context.add("mul", centred(context, x, offset, "f32"), factor)


def quantized(context: OpContext, y: int, first: int) -> int:
    """``y`` as integers by the scale that is operand ``first`` and the zero point behind it, u8
    where there is none."""
    zero = context.optional(first + 1)
    dtype: DType = "u8" if zero is None else context.dtype_of(zero)
    quotient = context.add("div", y, along(context, context.operand(first), y, 0))
    return rounded(context, quotient, None if zero is None else along(context, zero, y, 0), dtype)
