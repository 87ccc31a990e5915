"""ONNX ScatterElements: a copy of a tensor with elements replaced or combined.

In: a tensor, indices and updates of one shape. Out: core ``scatter_elements``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.rules.typing_rules import SCATTER_REDUCTIONS


def _translate(context: OpContext) -> Sequence[int]:
    x, indices, updates = (context.operand(position) for position in range(3))
    axis = context.axis_attribute(0, context.rank_of(x))
    combine = context.string_attribute("reduction", "none", SCATTER_REDUCTIONS)
    places = checked_indices(context, indices, context.shape_of(x)[axis])
    return (context.add("scatter_elements", x, places, updates, axis=axis, reduction=combine),)


OP = OnnxOp("ScatterElements", _translate)
