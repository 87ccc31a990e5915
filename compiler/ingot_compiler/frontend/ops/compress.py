"""ONNX Compress: the slices along an axis, or the elements, whose condition is true.

In: a tensor and a bool vector, perhaps shorter than the axis. Out: the slices; their number is
known at run time only. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_vector
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.selection import positions_of_true
from ingot_compiler.ir.sizes.ranges import at_most


def _translate(context: OpContext) -> Sequence[int]:
    x, condition = context.operand(0), as_vector(context, context.operand(1))
    axis = 0
    if "axis" in context.attributes:
        axis = context.axis_attribute(0, context.rank_of(x))
    else:
        x = as_vector(context, x)
    size, found = context.shape_of(x)[axis], positions_of_true(context, condition)
    if not at_most(context.shape_of(condition)[0], size):
        found = checked_indices(context, found, size)
    return (context.add("gather", x, found, axis=axis),)


OP = OnnxOp("Compress", _translate)
