"""ONNX ScatterND: a copy of a tensor with slices replaced or combined.

In: a tensor, index vectors and updates. Out: core ``scatter_nd``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_vectors
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.rules.typing_rules import SCATTER_REDUCTIONS


def _translate(context: OpContext) -> Sequence[int]:
    x, indices, updates = (context.operand(position) for position in range(3))
    combine = context.string_attribute("reduction", "none", SCATTER_REDUCTIONS)
    places = checked_vectors(context, indices, context.shape_of(x))
    return (context.add("scatter_nd", x, places, updates, reduction=combine),)


OP = OnnxOp("ScatterND", _translate)
