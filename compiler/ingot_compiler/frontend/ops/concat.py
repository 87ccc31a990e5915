"""ONNX Concat: operands one after the other along an axis.

In: one or more tensors. Out: core ``concat``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import concat
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    values = context.given()
    axis = context.axis_attribute(1, context.rank_of(values[0]))
    return (concat(context, values, axis),)


OP = OnnxOp("Concat", _translate, since=4)
