"""ONNX TopK: the largest or smallest elements along an axis, sorted.

In: a tensor and K, known or computed at run time. Out: values and i64 positions. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, swap_last
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import read_size, require_dim
from ingot_compiler.frontend.families.tensors.selection import order
from ingot_compiler.ir.dims import Dim, dim_max, dim_min
from ingot_compiler.ir.message import message


def _count(context: OpContext) -> Dim:
    if context.opset < 10:
        return context.int_attribute("k", 1)
    return read_size(context, cast(context, context.operand(1), "i64"))


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = context.rank_of(x)
    axis = context.axis_attribute(-1, rank)
    count, size = _count(context), context.shape_of(x)[axis]
    outside = dim_max(count - size, 0) - dim_min(count, 0)
    require_dim(context, outside, message("K in [0, ", size, "]"), count)
    rows = swap_last(context, x, axis)
    largest = context.bool_attribute("largest", default=True)
    places = order(context, rows, largest=largest, count=count)
    values = context.add("gather_elements", rows, places, axis=rank - 1)
    return swap_last(context, values, axis), swap_last(context, places, axis)


OP = OnnxOp("TopK", _translate)
