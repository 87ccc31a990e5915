"""ONNX Unique: the different elements, or slices along an axis.

In: a tensor. Out: values, first positions, inverse, counts; their number is known at run time only.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    as_vector,
    cast,
    concat,
    full,
    iota,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_loop
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.selection import positions_of_true, sort_keys
from ingot_compiler.ir.dims import Dim, dim_product


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    along = "axis" in context.attributes
    axis = context.axis_attribute(0, context.rank_of(x)) if along else 0
    x = x if along else as_vector(context, x)
    order, starts = _sorted(context, sort_keys(context, _rows(context, x, axis)))
    (count,) = context.shape_of(order)
    first = positions_of_true(context, starts)
    found = context.add("gather", order, first, axis=0)
    number = context.add(
        "cumsum", cast(context, starts, "i64"), axis=0, exclusive=False, reverse=False
    )
    number = context.add("sub", number, _one(context))
    counts = _lengths(context, first, count)
    if not context.bool_attribute("sorted", default=True):
        (unique,) = context.shape_of(found)
        by_place = context.add("argsort", context.add("bit_cast", found, dtype="u64"), count=unique)
        number = context.add(
            "gather", _scattered(context, by_place, iota(context, unique)), number, axis=0
        )
        counts = context.add("gather", counts, by_place, axis=0)
        found = context.add("gather", found, by_place, axis=0)
    inverse = _scattered(context, order, number)
    return context.add("gather", x, found, axis=axis), found, inverse, counts


def _sorted(context: OpContext, keys: int) -> tuple[int, int]:
    """(order of the rows [n], whether the row that stands there is another than the one before)."""
    count, length = context.shape_of(keys)
    order = _order(context, keys)
    place = iota(context, count)
    before = context.add("max", context.add("sub", place, _one(context)), _zero(context))
    ordered = context.add("gather", keys, order, axis=0)
    other = context.add("equal", ordered, context.add("gather", ordered, before, axis=0))
    other = context.add("logical_not", other)
    if length == 1:
        other = reshape(context, other, (count,))
    else:  # rows without elements are equal
        most = reduce(context, cast(context, other, "i32"), "max", (1,))
        other = context.add("less", context.scalar("i32", 0), most)
    return order, context.add("logical_or", other, context.add("equal", place, _zero(context)))


def _order(context: OpContext, keys: int) -> int:
    """i64[n]: rows by their first element, those with equal ones by the second, ...: a stable sort
    by each column, from the last one on."""
    count, length = context.shape_of(keys)
    if length == 1:
        return context.add("argsort", reshape(context, keys, (count,)), count=count)
    if length == 0:  # rows without elements are equal
        return iota(context, count)
    columns = transpose(context, keys, (1, 0))

    def sort(inputs: Sequence[int]) -> Sequence[int]:
        iteration, goes_on, order = inputs
        last = context.add("sub", size_scalar(context, length), _one(context))
        number = context.add("sub", last, iteration)
        column = context.add("gather", columns, number, axis=0)
        ordered = context.add("gather", column, order, axis=0)
        step = context.add("argsort", ordered, count=count)
        return goes_on, context.add("gather", order, step, axis=0)

    turns = (size_scalar(context, length), length)
    (order,) = build_loop(context, turns, (None, True), [iota(context, count)], sort)
    return order


def _one(context: OpContext) -> int:
    return context.scalar("i64", 1)


def _zero(context: OpContext) -> int:
    return context.scalar("i64", 0)


def _lengths(context: OpContext, first: int, count: Dim) -> int:
    """How far it is from each position to the next one, and from the last one to ``count``."""
    (number,) = context.shape_of(first)
    behind = concat(context, [first, context.integers([count])], 0)
    return context.add("sub", slice_axis(context, behind, 0, 1, number), first)


def _scattered(context: OpContext, places: int, values: int) -> int:
    """``values`` at their places, which are all places of as many elements."""
    base = full(context, "i64", 0, context.shape_of(places))
    return context.add("scatter_elements", base, places, values, axis=0, reduction="none")


def _rows(context: OpContext, x: int, axis: int) -> int:
    """[n, L]: what is compared, one row for each index of ``axis``."""
    others = [other for other in range(context.rank_of(x)) if other != axis]
    front = transpose(context, x, (axis, *others))
    count, *sizes = context.shape_of(front)
    rows = reshape(context, front, (count, dim_product(tuple(sizes))))
    return cast(context, rows, "u8") if context.dtype_of(rows) == "bool" else rows


OPS = (OnnxOp("Unique", _translate, 11),)
