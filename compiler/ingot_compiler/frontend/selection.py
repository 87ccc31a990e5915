"""Sorting and picking by composition: orders along an axis, positions of true elements.

In: a context and value ids. Out: value ids. Not done here: fast selection of few out of very many:
orders are ranks, which cost one comparison per pair.
"""

from __future__ import annotations

from ingot_compiler.frontend.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    full,
    iota,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.ir.dims import Dim, dim_add
from ingot_compiler.ir.types import FLOATS


def _exceeds(context: OpContext, left: int, right: int) -> int:
    """Left > right, NaN above everything."""
    above = context.add("less", right, left)
    if context.dtype_of(left) not in FLOATS:
        return above
    nan_left, nan_right = context.add("isnan", left), context.add("isnan", right)
    only = context.add("logical_and", nan_left, context.add("logical_not", nan_right))
    return context.add("logical_or", above, only)


def ranks(context: OpContext, x: int, *, largest: bool) -> int:
    """i64[.., n]: how many elements of its row come before each; of equals the earlier one does.
    NaN is the largest."""
    shape = context.shape_of(x)
    if context.dtype_of(x) == "bool":
        x = cast(context, x, "u8")
    own = reshape(context, x, (*shape, 1))
    other = reshape(context, x, (*shape[:-1], 1, shape[-1]))
    before, after = _exceeds(context, other, own), _exceeds(context, own, other)
    if not largest:
        before, after = after, before
    place = iota(context, shape[-1])
    earlier = context.add("less", place, reshape(context, place, (shape[-1], 1)))
    tied = context.add("logical_and", context.add("logical_not", after), earlier)
    beaten = cast(context, context.add("logical_or", before, tied), "i32")
    counted = context.add("reduce", beaten, function="sum", axes=(len(shape),), keepdims=False)
    return cast(context, counted, "i64")


def order(context: OpContext, x: int, *, largest: bool) -> int:
    """i64[.., n]: the positions of each row's elements, sorted."""
    shape = context.shape_of(x)
    positions = broadcast_to(context, iota(context, shape[-1]), shape)
    base = full(context, "i64", 0, shape)
    rank = ranks(context, x, largest=largest)
    return context.add(
        "scatter_elements", base, rank, positions, axis=len(shape) - 1, reduction="none"
    )


def positions_of_true(context: OpContext, mask: int) -> int:
    """i64[r]: ascending positions of the true elements of a bool vector; r is known at run time
    only."""
    (count,) = context.shape_of(mask)
    flags = cast(context, mask, "i64")
    place = context.add("cumsum", flags, axis=0, exclusive=True, reverse=False)
    total = reduce(context, flags, "sum", (0,), keepdims=True)
    (found,) = context.read_dims(total)
    # Positions of false elements go to one more place behind the others.
    spare = context.integers([count])
    target = context.add("select", mask, place, reshape(context, spare, ()))
    numbers = iota(context, count)
    base = full(context, "i64", 0, (dim_add(count, 1),))
    written = context.add("scatter_elements", base, target, numbers, axis=0, reduction="none")
    return slice_axis(context, written, 0, 0, found)


def split_index(context: OpContext, index: int, sizes: tuple[Dim, ...]) -> list[int]:
    """Row-major positions as one index per axis."""
    parts: list[int] = []
    for size in reversed(sizes):
        length = size_scalar(context, size)
        one = context.add("max", length, context.scalar("i64", 1))
        parts.append(context.add("mod", index, one))
        index = context.add("div", index, one)
    return parts[::-1]


def is_true(context: OpContext, x: int) -> int:
    """Whether elements are not 0."""
    if context.dtype_of(x) == "bool":
        return x
    return context.add("logical_not", binary_scalar(context, "equal", x, 0))
