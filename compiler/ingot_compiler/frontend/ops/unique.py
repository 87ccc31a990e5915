"""ONNX Unique: the different elements, or slices along an axis.

In: a tensor. Out: values, first positions, inverse, counts; their number is known at run time only.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    as_vector,
    cast,
    concat,
    full,
    iota,
    reduce,
    reshape,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.selection import positions_of_true, sort_keys
from ingot_compiler.ir.dims import Dim, dim_product

_EQUAL = (1 << 62) + 1


def _keys(context: OpContext, left: int, right: int) -> int:
    """i64[a, b] for rows [a, L] and [b, L]: _EQUAL, else even where the left row comes first, odd
    where the right does."""
    (rows, length), columns = context.shape_of(left), context.shape_of(right)[0]
    a, b = reshape(context, left, (rows, 1, length)), reshape(context, right, (1, columns, length))
    place = context.add("mul", iota(context, length), context.scalar("i64", 2))
    later = cast(context, context.add("less", b, a), "i64")
    same = context.add("equal", a, b)
    equal = context.scalar("i64", _EQUAL)
    first = context.add("select", same, equal, context.add("add", place, later))
    # Rows without elements are equal.
    least = reduce(context, first, "min", (2,))
    return context.add("min", least, context.scalar("i64", _EQUAL))


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    along = "axis" in context.attributes
    axis = context.axis_attribute(0, context.rank_of(x)) if along else 0
    x = x if along else as_vector(context, x)
    rows = _rows(context, x, axis)
    count, length = context.shape_of(rows)
    parts = _of_elements if length == 1 else _of_rows
    counts, found, inverse = parts(
        context,
        reshape(context, rows, (count,)) if length == 1 else rows,
        is_sorted=context.bool_attribute("sorted", default=True),
    )
    return context.add("gather", x, found, axis=axis), found, inverse, counts


def _of_elements(context: OpContext, x: int, *, is_sorted: bool) -> tuple[int, int, int]:
    """(counts, first positions, inverse) of a vector: runs of equal elements of the sorted one."""
    (count,) = context.shape_of(x)
    keys = sort_keys(context, x)
    order = context.add("argsort", keys, count=count)
    ordered = context.add("gather", keys, order, axis=0)
    place = iota(context, count)
    before = context.add("max", context.add("sub", place, _one(context)), _zero(context))
    same = context.add("equal", ordered, context.add("gather", ordered, before, axis=0))
    is_first = context.add("equal", place, _zero(context))
    starts = context.add("logical_or", context.add("logical_not", same), is_first)
    first = positions_of_true(context, starts)
    found = context.add("gather", order, first, axis=0)
    ends = cast(context, starts, "i64")
    number = context.add("cumsum", ends, axis=0, exclusive=False, reverse=False)
    number = context.add("sub", number, _one(context))
    counts = _lengths(context, first, count)
    if not is_sorted:
        (unique,) = context.shape_of(found)
        by_place = context.add("argsort", context.add("bit_cast", found, dtype="u64"), count=unique)
        number = context.add(
            "gather", _scattered(context, by_place, iota(context, unique)), number, axis=0
        )
        counts = context.add("gather", counts, by_place, axis=0)
        found = context.add("gather", found, by_place, axis=0)
    return counts, found, _scattered(context, order, number)


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


def _of_rows(context: OpContext, rows: int, *, is_sorted: bool) -> tuple[int, int, int]:
    """(counts, first positions, inverse) of rows, by comparing all pairs."""
    counts, found = _first_of_each(context, rows)
    found = _sorted(context, rows, found) if is_sorted else found
    return context.add("gather", counts, found, axis=0), found, _inverse(context, rows, found)


def _rows(context: OpContext, x: int, axis: int) -> int:
    """[n, L]: what is compared, one row for each index of ``axis``."""
    others = [other for other in range(context.rank_of(x)) if other != axis]
    front = transpose(context, x, (axis, *others))
    count, *sizes = context.shape_of(front)
    rows = reshape(context, front, (count, dim_product(tuple(sizes))))
    return cast(context, rows, "u8") if context.dtype_of(rows) == "bool" else rows


def _first_of_each(context: OpContext, rows: int) -> tuple[int, int]:
    """(how many rows equal each [n], positions of the rows that no earlier one equals)."""
    count = context.shape_of(rows)[0]
    keys, place = _keys(context, rows, rows), iota(context, count)
    same = context.add("equal", keys, context.scalar("i64", _EQUAL))
    counts = reduce(context, cast(context, same, "i64"), "sum", (1,))
    earlier = context.add("less", place, reshape(context, place, (count, 1)))
    repeated = cast(context, context.add("logical_and", same, earlier), "i64")
    before = reduce(context, repeated, "sum", (1,))
    is_first = context.add("equal", before, context.scalar("i64", 0))
    return counts, positions_of_true(context, is_first)


def _sorted(context: OpContext, rows: int, found: int) -> int:
    """Positions in the order of their rows."""
    (number,) = context.shape_of(found)
    chosen = context.add("gather", rows, found, axis=0)
    odd = context.add("bitwise_and", _keys(context, chosen, chosen), context.scalar("i64", 1))
    smaller = context.add("equal", _keys(context, chosen, chosen), context.scalar("i64", _EQUAL))
    before = context.add("select", smaller, context.scalar("i64", 0), odd)
    rank = reduce(context, before, "sum", (1,))
    base = full(context, "i64", 0, (number,))
    return context.add("scatter_elements", base, rank, found, axis=0, reduction="none")


def _inverse(context: OpContext, rows: int, found: int) -> int:
    """For each row the place of its equal among those at ``found``."""
    chosen = context.add("gather", rows, found, axis=0)
    matches = context.add("equal", _keys(context, rows, chosen), context.scalar("i64", _EQUAL))
    numbers = iota(context, context.shape_of(found)[0])
    return reduce(
        context, context.add("select", matches, numbers, context.scalar("i64", 0)), "sum", (1,)
    )


OP = OnnxOp("Unique", _translate, 11)
