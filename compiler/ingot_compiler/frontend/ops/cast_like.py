"""ONNX CastLike: change to the element type of another tensor.

In: a tensor and one of the wanted type. Out: core ``cast``, or what ``low_bits`` and ``strings``
compose. Not done here: 6-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.low_bits import convert
from ingot_compiler.frontend.ops.cast import cast_attributes, cast_strings


def _translate(context: OpContext) -> Sequence[int]:
    x, like = context.operand(0), context.operand(1)
    if x < 0 or like < 0:
        return (cast_strings(context, x, None if like < 0 else context.dtype_of(like)),)
    saturate, rounding = cast_attributes(context)
    dtype = context.dtype_of(like)
    return (convert(context, x, dtype, saturate=saturate, rounding=rounding),)


OP = OnnxOp("CastLike", _translate)
