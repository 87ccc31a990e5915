"""ONNX Runtime BiasSoftmax: the softmax of a sum, over all axes from one on as one.

In: scores, a bias. Out: core ``add``, ``softmax``. Not done here: types (``ir/ops``).

A bias of lower rank lacks axes in the middle (``is_inner_broadcast``), or the first ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, bias = context.operand(0), context.operand(1)
    rank = context.rank_of(x)
    axis = context.axis_attribute(1, rank)
    missing = rank - context.rank_of(bias)
    if missing > 0 and context.bool_attribute("is_inner_broadcast"):
        bias = unsqueeze(context, bias, range(axis - missing, axis))
    total = context.add("add", x, bias)
    return (as_onnx(context, "Softmax", total, opset=11, axis=axis),)


OP = OnnxOp(
    "BiasSoftmax", _translate, signature="data bias -> output; axis:int is_inner_broadcast!:int"
)
