"""ONNX CumProd: running products along an axis.

In: a tensor of numbers and an axis. Out: core ``select`` and ``reduce`` over pairs of positions. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import reshape, transpose
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    axes = context.known_ints(context.operand(1))
    rank = context.rank_of(x)
    if axes is None and rank != 1:
        raise Unsupported("an axis that is computed at run time")
    axis = context.axis(axes[0], rank) if axes else 0
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    rows = transpose(context, x, swap)
    shape = context.shape_of(rows)
    other = context.add("iota", dtype="i64", length=shape[-1])
    own = reshape(context, other, (shape[-1], 1))
    if context.int_attribute("reverse", 0):
        own, other = other, own
    strict = bool(context.int_attribute("exclusive", 0))
    counts = context.add("less" if strict else "less_equal", other, own)
    factors = context.add(
        "select", counts, reshape(context, rows, (*shape[:-1], 1, shape[-1])), context.scalar(context.dtype_of(x), 1)
    )
    products = context.add("reduce", factors, function="product", axes=(rank,), keepdims=False)
    return (transpose(context, products, swap),)


OP = OnnxOp("CumProd", _translate)
