"""ONNX Cast: change of element type.

In: a tensor. Out: core ``cast``, or what ``low_bits`` composes. Not done here: strings, 6-bit
floats (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.low_bits import ROUNDINGS, Rounding, convert
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.onnx_types import dtype_of, onnx_dtype_name


def _translate(context: OpContext) -> Sequence[int]:
    number = context.int_attribute("to", 0)
    dtype, x = dtype_of(number), context.operand(0)
    if x < 0:
        if onnx_dtype_name(number) == "string":
            return (x,)
        raise Unsupported("a cast of strings to numbers")
    if dtype is None:
        raise Unsupported(f"a cast to {onnx_dtype_name(number)}")
    saturate, rounding = cast_attributes(context)
    return (convert(context, x, dtype, saturate=saturate, rounding=rounding),)


def cast_attributes(context: OpContext) -> tuple[bool, Rounding]:
    """``saturate`` and ``round_mode`` of Cast and CastLike."""
    text = context.string_attribute("round_mode", "up", ROUNDINGS)
    rounding: Rounding = next(known for known in ROUNDINGS if known == text)
    return bool(context.int_attribute("saturate", 1)), rounding


OP = OnnxOp("Cast", _translate)
