"""ONNX ScatterND: a copy of a tensor with slices replaced or combined.

In: a tensor, index vectors and updates. Out: core ``scatter_nd``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import require_vector_length
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    require_vector_length(context, context.operand(1))
    combine = context.string_attribute("reduction", "none", ("none", "add", "mul", "min", "max"))
    return (context.add("scatter_nd", *context.given(), reduction=combine),)


OP = OnnxOp("ScatterND", _translate)
