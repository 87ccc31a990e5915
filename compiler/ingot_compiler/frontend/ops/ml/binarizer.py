"""ai.onnx.ml Binarizer: 1 where an element is above the threshold, else 0.

In: a tensor of numbers. Out: the same element type. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_float, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    wide = as_float(context, x)
    limit = context.scalar(context.dtype_of(wide), context.float_attribute("threshold", 0.0))
    return (cast(context, context.add("less", limit, wide), context.dtype_of(x)),)


OP = OnnxOp("Binarizer", _translate)
