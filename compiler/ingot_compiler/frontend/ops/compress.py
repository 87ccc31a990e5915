"""ONNX Compress: the slices along an axis, or the elements, whose condition is true.

In: a tensor and a bool vector, perhaps shorter than the axis. Out: the slices; their number is known at run time only. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import as_vector
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.selection import positions_of_true


def _translate(context: OpContext) -> Sequence[int]:
    x, condition = context.operand(0), as_vector(context, context.operand(1))
    found = positions_of_true(context, condition)
    if "axis" not in context.attributes:
        return (context.add("gather", as_vector(context, x), found, axis=0),)
    axis = context.axis(context.int_attribute("axis", 0), context.rank_of(x))
    return (context.add("gather", x, found, axis=axis),)


OP = OnnxOp("Compress", _translate)
