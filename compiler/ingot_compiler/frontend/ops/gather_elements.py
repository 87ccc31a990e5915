"""ONNX GatherElements: elements along an axis, picked by indices of the result's shape.

In: a tensor and integer indices. Out: core ``gather_elements``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, indices = context.operand(0), context.operand(1)
    axis = context.axis_attribute(0, context.rank_of(x))
    picked = checked_indices(context, indices, context.shape_of(x)[axis])
    return (context.add("gather_elements", x, picked, axis=axis),)


OP = OnnxOp("GatherElements", _translate)
