"""ONNX CastLike: change to the element type of another tensor.

In: a tensor and one of the wanted type. Out: core ``cast``, or what ``low_bits`` composes.
Not done here: strings, 6-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.low_bits import convert
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.cast import cast_attributes


def _translate(context: OpContext) -> Sequence[int]:
    saturate, rounding = cast_attributes(context)
    dtype = context.dtype_of(context.operand(1))
    return (convert(context, context.operand(0), dtype, saturate=saturate, rounding=rounding),)


OP = OnnxOp("CastLike", _translate)
