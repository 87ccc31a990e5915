"""ONNX Flatten: a matrix, the axes before ``axis`` against the others.

In: a tensor. Out: core ``reshape``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.dims import dim_product


def _translate(context: OpContext) -> Sequence[int]:
    x, rank = context.operand(0), context.rank_of(context.operand(0))
    axis = context.int_attribute("axis", 1)
    # rank itself is allowed: everything is a row.
    axis = rank if axis == rank else 0 if rank == 0 else counted_axis(axis, rank)
    shape = context.shape_of(x)
    return (reshape(context, x, (dim_product(shape[:axis]), dim_product(shape[axis:]))),)


OP = OnnxOp("Flatten", _translate)
