"""ONNX CastLike: change to the element type of another tensor.

In: a tensor and one of the wanted type. Out: core ``cast``. Not done here: strings, 4- and 8-bit
floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import cast
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    return (cast(context, context.operand(0), context.dtype_of(context.operand(1))),)


OP = OnnxOp("CastLike", _translate)
