"""ONNX CumProd: running products along an axis.

In: a tensor of numbers and an axis. Out: core ``select`` and ``reduce`` over pairs of positions.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import iota, reduce, reshape, swap_last
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.cumulative import cumulative


def _along(context: OpContext, x: int, axis: int) -> int:
    rows = swap_last(context, x, axis)
    *outer, size = context.shape_of(rows)
    other = iota(context, size)
    own = reshape(context, other, (size, 1))
    if context.bool_attribute("reverse"):
        own, other = other, own
    strict = context.bool_attribute("exclusive")
    counts = context.add("less" if strict else "less_equal", other, own)
    wide = reshape(context, rows, (*outer, 1, size))
    factors = context.add("select", counts, wide, context.scalar(context.dtype_of(x), 1))
    products = reduce(context, factors, "product", (context.rank_of(x),))
    return swap_last(context, products, axis)


OP = OnnxOp("CumProd", cumulative(_along), 26)
