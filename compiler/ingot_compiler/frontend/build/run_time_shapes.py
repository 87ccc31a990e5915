"""Shapes that tensors compute at run time: ONNX's special values resolved by tensor ops, then read
as dimensions.

In: a context and integer tensors. Out: dimensions, all >= 0 at run time. Not done here: tensors
whose values are known (their translations need no tensor op).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    as_vector,
    binary_scalar,
    cast,
    clamp,
    element,
    iota,
    reduce,
    reshape,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_if
from ingot_compiler.frontend.build.index_checks import checked, checked_axes
from ingot_compiler.ir.dims import Dim, dim_product


def reshape_dims(context: OpContext, x: int, shape: int, *, zero_copies: bool) -> tuple[Dim, ...]:
    """The target of a Reshape whose shape is computed at run time: 0 copies x's size (if so), -1 is
    what is left over."""
    wanted = cast(context, as_vector(context, shape), "i64")
    own = context.shape_of(x)
    count = context.count_of(shape)
    if zero_copies:
        copied = context.integers([own[index] if index < len(own) else 1 for index in range(count)])
        wanted = context.add("select", binary_scalar(context, "equal", wanted, 0), copied, wanted)
    inferred = binary_scalar(context, "equal", wanted, -1)
    others = context.add("select", inferred, context.scalar("i64", 1), wanted)
    total = reduce(context, others, "product", (0,), keepdims=True)
    rest = context.add(
        "div", context.integers([dim_product(own)]), binary_scalar(context, "max", total, 1)
    )
    return context.read_dims(context.add("select", inferred, rest, wanted))


def axis_flags(context: OpContext, axes: int, rank: int) -> int:
    """bool[rank]: whether ``axes`` (negative ones count from the end) names the axis."""
    table = _axis_table(context, axes, rank)
    return reduce(context, table, "max", (0,))


def _axis_table(context: OpContext, axes: int, rank: int) -> int:
    """bool[count, rank]: whether entry i of ``axes`` names axis j; each names one, none twice."""
    vector = checked_axes(context, as_vector(context, axes), rank)
    (count,) = context.shape_of(vector)
    table = context.add(
        "equal", reshape(context, vector, (count, 1)), context.integers(range(rank))
    )
    named = reduce(context, cast(context, table, "i64"), "sum", (0,), keepdims=True)
    return checked(
        context, table, binary_scalar(context, "less", named, 2), "every axis at most once"
    )


def per_axis(context: OpContext, axes: int, values: int, default: Sequence[Dim]) -> int:
    """i64[rank]: the entry of ``values`` that belongs to each axis, ``default`` for axes that
    ``axes`` does not name."""
    table = _axis_table(context, axes, len(default))
    column = reshape(
        context, cast(context, as_vector(context, values), "i64"), (context.count_of(axes), 1)
    )
    picked = context.add("select", table, column, context.scalar("i64", 0))
    total = reduce(context, picked, "sum", (0,))
    flags = reduce(context, table, "max", (0,))
    return context.add("select", flags, total, context.integers(default))


def kept_sizes(context: OpContext, flags: int, shape: Sequence[Dim], count: int) -> tuple[Dim, ...]:
    """The sizes without the ``count`` axes that ``flags`` names: each goes to the slot of its rank
    among the kept ones."""
    rank = len(shape)
    kept = context.add("logical_not", flags)
    slot = context.add("cumsum", cast(context, kept, "i64"), axis=0, exclusive=True, reverse=False)
    matches = context.add(
        "equal", reshape(context, slot, (rank, 1)), context.integers(range(rank - count))
    )
    matches = context.add("logical_and", matches, reshape(context, kept, (rank, 1)))
    own = reshape(context, context.integers(shape), (rank, 1))
    picked = context.add("select", matches, own, context.scalar("i64", 0))
    return context.read_dims(reduce(context, picked, "sum", (0,)))


def sizes_around(
    context: OpContext, axis: int, shape: tuple[Dim, ...], keepdims: bool
) -> tuple[Dim, ...]:
    """The elements before one axis, along it and behind it; then the sizes of what a reduction over
    it leaves."""
    rank = len(shape)
    columns: list[list[Dim]] = []
    for each, size in enumerate(shape):
        before, after = shape[:each], shape[each + 1 :]
        left = (*before, 1, *after) if keepdims else (*before, *after)
        columns.append([dim_product(before), size, dim_product(after), *left])
    numbers = [number for row in zip(*columns, strict=True) for number in row]
    table = reshape(context, context.integers(numbers), (len(columns[0]), rank))
    place = checked_axes(context, as_vector(context, axis), rank)
    return context.read_dims(as_vector(context, context.add("gather", table, place, axis=1)))


def slice_bounds(
    context: OpContext, starts: int, ends: int, sizes: Sequence[Dim], steps: Sequence[int]
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """First index and number of elements per sliced axis, for bounds computed at run time (ONNX
    Slice-13).

    ``sizes`` and ``steps`` belong to the sliced axes. A negative bound counts from the end; bounds
    are clamped.
    """
    start, length = _bounds(context, starts, ends, sizes, context.integers(steps))
    return context.read_dims(start), context.read_dims(length)


def slice_by_steps(
    context: OpContext, x: int, starts: int, ends: int, steps: int
) -> tuple[int, ...]:
    """A slice with one start, end and step per axis, all computed at run time: one copy where all
    steps are 1, else rows picked axis by axis."""
    start, length = _bounds(context, starts, ends, context.shape_of(x), steps)
    first, lengths = context.read_dims(start), context.read_dims(length)

    def dense(_: Sequence[int]) -> Sequence[int]:
        ones = (1,) * len(lengths)
        return (context.add("slice", x, starts=first, sizes=lengths, steps=ones),)

    def picked(_: Sequence[int]) -> Sequence[int]:
        rows = x
        for axis, size in enumerate(lengths):
            offsets = context.add("mul", iota(context, size), element(context, steps, axis))
            places = context.add("add", offsets, element(context, start, axis))
            rows = context.add("gather", rows, places, axis=axis)
        return (rows,)

    are_one = reduce(context, binary_scalar(context, "equal", steps, 1), "min", (0,))
    return build_if(context, are_one, dense, picked)


def _bounds(
    context: OpContext, starts: int, ends: int, sizes: Sequence[Dim], step: int
) -> tuple[int, int]:
    """First index and number of elements per axis, as i64 vectors."""
    size = context.integers(sizes)
    zero = context.scalar("i64", 0)
    backwards = cast(context, context.add("less", step, zero), "i64")
    # Forwards both bounds lie in [0, size]; backwards the first in [0, size - 1] and the last in
    # [-1, size - 1].
    last = context.add("sub", size, backwards)
    start = clamp(context, _from_front(context, starts, size, zero), zero, last)
    end = _from_front(context, ends, size, zero)
    end = clamp(context, end, context.add("neg", backwards), last)
    # ceil((end - start) / step): div truncates, so round away from 0 by adding step - sign.
    away = context.add("sub", step, context.add("sign", step))
    span = context.add("add", context.add("sub", end, start), away)
    length = context.add("max", context.add("div", span, step), zero)
    # An empty axis has no last element to start from.
    return context.add("max", start, zero), context.add("min", length, size)


def _from_front(context: OpContext, bound: int, size: int, zero: int) -> int:
    """Bounds as i64, negative ones counted from the end."""
    vector = cast(context, as_vector(context, bound), "i64")
    is_negative, counted = context.add("less", vector, zero), context.add("add", vector, size)
    return context.add("select", is_negative, counted, vector)
