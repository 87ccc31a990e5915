"""ONNX CumProd: running products along an axis.

In: a tensor of numbers and an axis. Out: core ``select`` and ``reduce`` over pairs of positions.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import reshape, sizes_from, transpose
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.index_checks import chosen_along
from ingot_compiler.frontend.onnx_op import OnnxOp


def _along(context: OpContext, x: int, axis: int) -> int:
    rank = context.rank_of(x)
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
        "select",
        counts,
        reshape(context, rows, (*shape[:-1], 1, shape[-1])),
        context.scalar(context.dtype_of(x), 1),
    )
    products = context.add("reduce", factors, function="product", axes=(rank,), keepdims=False)
    return transpose(context, products, swap)


def _translate(context: OpContext) -> Sequence[int]:
    x, rank = context.operand(0), len(sizes_from(context, context.operand(0), 1))
    known = context.known_ints(context.operand(1))
    if known:
        return (_along(context, x, context.axis(known[0], rank)),)
    # An axis that only a run knows: all axes, one of which is chosen.
    return (
        chosen_along(
            context, context.operand(1), [_along(context, x, other) for other in range(rank)], rank
        ),
    )


OP = OnnxOp("CumProd", _translate, 26)
