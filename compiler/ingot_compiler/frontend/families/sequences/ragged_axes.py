"""Sequences whose length a run decides, to and from one tensor: parts along an axis.

In: a context, a sequence and an axis, or a tensor and sizes that a run computes. Out: a tensor, a
sequence. Not done here: single elements (``ragged``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
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
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.sequences import add_value, value_of
from ingot_compiler.frontend.build.values import RaggedSequence, Strings
from ingot_compiler.frontend.families.sequences.ragged import (
    flat,
    length_of,
    shape_of,
    shaped,
    starts_of,
)
from ingot_compiler.ir.dims import Dim, dim_product


def concatenated(context: OpContext, sequence: RaggedSequence, axis: int, *, stacks: bool) -> int:
    """The elements one after the other along an axis, or stacked."""
    if sequence.rank is None:
        raise Unsupported("elements whose number of dimensions only a run knows")
    first = _first_shape(context, sequence)
    length = length_of(context, sequence)
    if stacks:
        data = _alike(context, sequence, first, None)
        order = [*range(1, len(first) + 1)]
        order.insert(axis, 0)
        return _transposed(context, shaped(context, data, (length, *first)), order)
    data = _alike(context, sequence, first, axis)
    sizes = reshape(context, slice_axis(context, sequence.shapes, 1, axis, 1), (length,))
    (total,) = context.read_dims(reduce(context, sizes, "sum", (0,)))
    shape = (*first[:axis], total, *first[axis + 1 :])
    if axis == 0:
        return shaped(context, data, shape)
    places = _places(context, sizes, shape, axis)
    return shaped(
        context, _picked(context, data, reshape(context, places, (dim_product(shape),))), shape
    )


def split(
    context: OpContext, x: int, axis: int, sizes: int, size: int | None = None
) -> RaggedSequence:
    """Parts of those sizes, i64[n], along an axis, as a sequence; ``size``: what all sizes are, where
    that is known."""
    shape = shape_of(context, x)
    (count,) = context.shape_of(sizes)
    total = reduce(context, sizes, "sum", (0,))
    least = reduce(context, sizes, "min", (0,))
    whole = context.add("equal", total, size_scalar(context, shape[axis]))
    fits = context.add(
        "logical_and", whole, context.add("less_equal", context.scalar("i64", 0), least)
    )
    sizes = checked(context, sizes, fits, "sizes from 0 on that add up to that of the axis")
    columns = [
        reshape(context, sizes, (count, 1)) if at == axis else _column(context, dim, count)
        for at, dim in enumerate(shape)
    ]
    data = flat(context, x)
    if axis:
        elements = dim_product(shape)
        places = reshape(context, _places(context, sizes, shape, axis), (elements,))
        target = full(context, "i64", 0, (elements,))
        order = context.add(
            "scatter_elements", target, places, iota(context, elements), axis=0, reduction="none"
        )
        data = _picked(context, data, order)
    common = (*shape[:axis], size, *shape[axis + 1 :])
    return RaggedSequence(data, concat(context, columns, 1), len(shape), common)


def without_axis(context: OpContext, sequence: RaggedSequence, axis: int) -> RaggedSequence:
    """A sequence whose elements have size 1 along an axis, without that."""
    rank = sequence.rank or 0
    parts = [slice_axis(context, sequence.shapes, 1, at, 1) for at in range(rank) if at != axis]
    shapes = (
        concat(context, parts, 1)
        if parts
        else full(context, "i64", 0, (length_of(context, sequence), 0))
    )
    common = (*sequence.common[:axis], *sequence.common[axis + 1 :])
    return RaggedSequence(sequence.data, shapes, rank - 1, common)


def equal_sizes(context: OpContext, step: int, size: Dim) -> int:
    """i64[n]: the sizes of parts of ``step``, a scalar, of which the last may be smaller."""
    step = checked(
        context,
        step,
        context.add("less", context.scalar("i64", 0), step),
        "a positive size of parts",
    )
    whole = size_scalar(context, size)
    rounded = binary_scalar(context, "add", context.add("add", whole, step), -1)
    (count,) = context.read_dims(context.add("div", rounded, step))
    starts = context.add("mul", iota(context, count), step)
    return context.add("min", context.add("sub", whole, starts), step)


def _column(context: OpContext, dim: Dim, count: Dim) -> int:
    """i64[count, 1] of one size."""
    return context.add("broadcast_to", size_scalar(context, dim), shape=(count, 1))


def _first_shape(context: OpContext, sequence: RaggedSequence) -> tuple[Dim, ...]:
    """The shape of the first element; refused at run time where there is none."""
    length = size_scalar(context, length_of(context, sequence))
    some = context.add("less", context.scalar("i64", 0), length)
    table = checked(context, sequence.shapes, some, "a sequence with elements")
    row = context.add("gather", table, context.integers([0]), axis=0)
    return context.read_dims(reshape(context, row, (sequence.rank or 0,)))


def _alike(
    context: OpContext, sequence: RaggedSequence, first: Sequence[Dim], axis: int | None
) -> int:
    """The data, refused at run time unless all shapes are that of the first element, but for an
    axis."""
    if not first or value_of(context, sequence.data) is not None:
        return sequence.data
    same = context.add("equal", sequence.shapes, context.integers(first))
    if axis is not None:
        own = binary_scalar(context, "equal", iota(context, len(first)), axis)
        same = context.add("logical_or", same, own)
    whole = cast(context, reduce(context, cast(context, same, "i64"), "min", (0, 1)), "bool")
    return checked(context, sequence.data, whole, "elements of one shape but for the axis")


def _places(context: OpContext, sizes: int, shape: tuple[Dim, ...], axis: int) -> int:
    """i64 in ``shape``: where each scalar of a tensor lies among the parts of these sizes along an
    axis, when these lie one after the other."""
    outer, total, inner = dim_product(shape[:axis]), shape[axis], dim_product(shape[axis + 1 :])
    starts = starts_of(context, sizes)
    ends = context.add("add", starts, sizes)
    rows = reshape(context, iota(context, total), (total, 1))
    behind = cast(context, context.add("less_equal", ends, rows), "i64")
    part = reduce(context, behind, "sum", (1,))
    start, size = (context.add("gather", each, part, axis=0) for each in (starts, sizes))
    start, size = (reshape(context, each, (1, total, 1)) for each in (start, size))
    row = reshape(context, rows, (1, total, 1))
    first = reshape(context, iota(context, outer), (outer, 1, 1))
    last = iota(context, inner)
    count, width = size_scalar(context, outer), size_scalar(context, inner)
    before = context.add("add", context.add("mul", start, count), context.add("mul", first, size))
    before = context.add("add", before, context.add("sub", row, start))
    return context.add("add", context.add("mul", before, width), last)


def _picked(context: OpContext, data: int, places: int) -> int:
    """KnownSequence of flat data."""
    found = value_of(context, data)
    if isinstance(found, Strings):
        spans = context.add("gather", found.spans, places, axis=0)
        return add_value(context, Strings(spans, found.pool))
    return context.add("gather", data, places, axis=0)


def _transposed(context: OpContext, x: int, order: Sequence[int]) -> int:
    found = value_of(context, x)
    if isinstance(found, Strings):
        spans = transpose(context, found.spans, [*order, len(order)])
        return add_value(context, Strings(spans, found.pool))
    return transpose(context, x, order)
