"""ONNX Unique: the different elements, or slices along an axis.

In: a tensor. Out: values, first positions, inverse, counts; their number is known at run time only.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import as_vector, cast, full, product, reshape, transpose
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.selection import positions_of_true

_EQUAL = (1 << 62) + 1


def _keys(context: OpContext, left: int, right: int) -> int:
    """i64[a, b] for rows [a, L] and [b, L]: _EQUAL, else even where the left row comes first, odd
    where the right does."""
    (rows, length), columns = context.shape_of(left), context.shape_of(right)[0]
    a, b = reshape(context, left, (rows, 1, length)), reshape(context, right, (1, columns, length))
    place = context.add(
        "mul", context.add("iota", dtype="i64", length=length), context.scalar("i64", 2)
    )
    later = cast(context, context.add("less", b, a), "i64")
    same = context.add("equal", a, b)
    first = context.add(
        "select", same, context.scalar("i64", _EQUAL), context.add("add", place, later)
    )
    # Rows without elements are equal.
    least = context.add("reduce", first, function="min", axes=(2,), keepdims=False)
    return context.add("min", least, context.scalar("i64", _EQUAL))


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    sorted_ = bool(context.int_attribute("sorted", 1))
    along = "axis" in context.attributes
    axis = context.axis(context.int_attribute("axis", 0), context.rank_of(x)) if along else 0
    order = (
        (axis, *(other for other in range(context.rank_of(x)) if other != axis)) if along else ()
    )
    front = transpose(context, x, order) if along else as_vector(context, x)
    shape = context.shape_of(front)
    rows = reshape(context, front, (shape[0], product(shape[1:])))
    rows = cast(context, rows, "u8") if context.dtype_of(rows) == "bool" else rows
    keys, iota = _keys(context, rows, rows), context.add("iota", dtype="i64", length=shape[0])
    same = context.add("equal", keys, context.scalar("i64", _EQUAL))
    counts = context.add(
        "reduce", cast(context, same, "i64"), function="sum", axes=(1,), keepdims=False
    )
    earlier = context.add("less", iota, reshape(context, iota, (shape[0], 1)))
    repeated = cast(context, context.add("logical_and", same, earlier), "i64")
    before = context.add("reduce", repeated, function="sum", axes=(1,), keepdims=False)
    found = positions_of_true(context, context.add("equal", before, context.scalar("i64", 0)))
    if sorted_:
        found = _sorted(context, rows, found)
    chosen = context.add("gather", rows, found, axis=0)
    (number,) = context.shape_of(found)
    matches = context.add("equal", _keys(context, rows, chosen), context.scalar("i64", _EQUAL))
    numbers = context.add("iota", dtype="i64", length=number)
    picked = context.add("select", matches, numbers, context.scalar("i64", 0))
    inverse = context.add("reduce", picked, function="sum", axes=(1,), keepdims=False)
    values = context.add("gather", x if along else as_vector(context, x), found, axis=axis)
    return values, found, inverse, context.add("gather", counts, found, axis=0)


def _sorted(context: OpContext, rows: int, found: int) -> int:
    """Positions in the order of their rows."""
    (number,) = context.shape_of(found)
    chosen = context.add("gather", rows, found, axis=0)
    odd = context.add("bitwise_and", _keys(context, chosen, chosen), context.scalar("i64", 1))
    smaller = context.add("equal", _keys(context, chosen, chosen), context.scalar("i64", _EQUAL))
    before = context.add("select", smaller, context.scalar("i64", 0), odd)
    rank = context.add("reduce", before, function="sum", axes=(1,), keepdims=False)
    base = full(context, "i64", 0, (number,))
    return context.add("scatter_elements", base, rank, found, axis=0, reduction="none")


OP = OnnxOp("Unique", _translate, 11)
