"""Sequences whose length a run decides: all elements one after the other, and a row with the shape of
each.

In: a context, sequences, positions that a run computes. Out: sequences and tensors, by ops on those
two tensors. Not done here: sequences whose elements are known one by one (``ops``), parts along an
axis (``ragged_axes``).

Each op that gives a new sequence copies all elements.
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
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.sequences import add_value, named, value_of
from ingot_compiler.frontend.build.values import KnownSequence, RaggedSequence, Shaped, Strings
from ingot_compiler.frontend.families.strings.pool import joined_strings
from ingot_compiler.ir.dims import Dim, dim_max, dim_product
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType


def pack(context: OpContext, sequence: KnownSequence | RaggedSequence) -> RaggedSequence:
    """A sequence as one whose length a run decides.

    Raises:
        Unsupported: its elements are of several types, or there are none to tell their type.
    """
    if isinstance(sequence, RaggedSequence):
        return sequence
    if not sequence.items:
        raise Unsupported("a sequence of no elements, and of no type that is known")
    shapes = [shape_of(context, item) for item in sequence.items]
    rank = max(map(len, shapes))
    rows = [dim for shape in shapes for dim in (*shape, *(-1,) * (rank - len(shape)))]
    table = reshape(context, context.integers(rows), (len(shapes), rank))
    data = flat_concat(context, [flat(context, item) for item in sequence.items])
    return RaggedSequence(data, table, rank if len(set(map(len, shapes))) == 1 else None)


def empty(context: OpContext, dtype: DType, rank: int | None) -> RaggedSequence:
    """A sequence of no elements, of tensors of that type."""
    data = full(context, dtype, 0, (0,))
    return RaggedSequence(data, full(context, "i64", 0, (0, rank or 0)), rank)


def shape_of(context: OpContext, value: int) -> tuple[Dim, ...]:
    """The shape of a tensor of numbers or strings."""
    found = value_of(context, value)
    if isinstance(found, Strings):
        return context.shape_of(found.spans)[:-1]
    if found is not None:
        raise Unsupported(f"{named(context, value)} in a sequence")
    return context.shape_of(value)


def flat(context: OpContext, value: int) -> int:
    """A tensor of numbers or strings as one of rank 1."""
    count = dim_product(shape_of(context, value))
    return shaped(context, value, (count,))


def shaped(context: OpContext, value: int, shape: Sequence[Dim]) -> int:
    """A tensor of numbers or strings in another shape."""
    found = value_of(context, value)
    if isinstance(found, Strings):
        spans = reshape(context, found.spans, (*shape, 2))
        return add_value(context, Strings(spans, found.pool))
    return reshape(context, value, shape)


def flat_concat(context: OpContext, parts: Sequence[int]) -> int:
    """Flat tensors one after the other."""
    found = [value_of(context, part) for part in parts]
    strings = [part for part in found if isinstance(part, Strings)]
    if strings:
        if len(strings) < len(parts):
            raise OpTypeError("elements of one type", "strings and numbers")
        spans, pool = joined_strings(context, strings)
        return add_value(context, Strings(concat(context, spans, 0), pool))
    if len({context.dtype_of(part) for part in parts}) > 1:
        raise OpTypeError("elements of one type", ", ".join(map(context.dtype_of, parts)))
    return concat(context, parts, 0)


def flat_slice(context: OpContext, value: int, start: Dim, size: Dim) -> int:
    """Some elements of a flat tensor."""
    found = value_of(context, value)
    if isinstance(found, Strings):
        spans = slice_axis(context, found.spans, 0, start, size)
        return add_value(context, Strings(spans, found.pool))
    return slice_axis(context, value, 0, start, size)


def length_of(context: OpContext, sequence: RaggedSequence) -> Dim:
    """How many elements there are."""
    return context.shape_of(sequence.shapes)[0]


def counts_of(context: OpContext, shapes: int) -> int:
    """i64[length]: the number of scalars in each element."""
    sizes = context.add("max", shapes, context.scalar("i64", 0))
    absent = binary_scalar(context, "less", shapes, 0)
    sizes = context.add("select", absent, context.scalar("i64", 1), sizes)
    return reduce(context, sizes, "product", (1,))


def starts_of(context: OpContext, counts: int) -> int:
    """i64[length]: where each element begins."""
    return context.add("cumsum", counts, axis=0, exclusive=True, reverse=False)


def counted(context: OpContext, position: int, length: Dim, *, to_end: bool = False) -> int:
    """A position as an i64 from 0 on, counted from the front; ``to_end``: the end is one."""
    wide, count = cast(context, reshape(context, position, ()), "i64"), size_scalar(context, length)
    inside = context.add("logical_and", context.add("less_equal", context.add("neg", count), wide),
                         context.add("less_equal" if to_end else "less", wide, count))  # fmt: skip
    end = "]" if to_end else ")"
    wide = checked(context, wide, inside, message("a position in [-", length, ", ", length, end))
    is_negative = binary_scalar(context, "less", wide, 0)
    return context.add("select", is_negative, context.add("add", wide, count), wide)


def _at(context: OpContext, vector: int, position: int) -> int:
    return reshape(context, context.add("gather", vector, position, axis=0), ())


def element_at(context: OpContext, sequence: RaggedSequence, position: int) -> int:
    """The element at a position from ``counted``."""
    counts = counts_of(context, sequence.shapes)
    (start,) = context.read_dims(_at(context, starts_of(context, counts), position))
    row = context.add("gather", sequence.shapes, reshape(context, position, (1,)), axis=0)
    row = reshape(context, row, context.shape_of(sequence.shapes)[1:])
    if sequence.rank is None:
        (count,) = context.read_dims(_at(context, counts, position))
        return add_value(context, Shaped(flat_slice(context, sequence.data, start, count), row))
    read = context.read_dims(row)
    common = sequence.common or (None,) * len(read)
    shape = tuple(own if size is None else size for own, size in zip(read, common, strict=True))
    data = flat_slice(context, sequence.data, start, dim_product(shape))
    return shaped(context, data, shape)


def inserted(
    context: OpContext, sequence: RaggedSequence, value: int, position: int | None
) -> RaggedSequence:
    """With one element more, at a position from ``counted``, or at the end."""
    found = value_of(context, value)
    if isinstance(found, Shaped):
        added, own, rank = found.data, found.shape, None
    else:
        shape = shape_of(context, value)
        added, own, rank = flat(context, value), context.integers(shape), len(shape)
    row = reshape(context, own, (1, *context.shape_of(own)))
    width = _wider(context, sequence.shapes, row)
    shapes, row = (_padded(context, table, width) for table in (sequence.shapes, row))
    first = [sequence.data, shapes]
    last: list[int] = []
    if position is not None:
        first, last = _split(context, sequence, shapes, position)
    data = [first[0], added, *last[:1]]
    table = concat(context, [first[1], row, *last[1:]], 0)
    is_known = sequence.rank == rank
    return RaggedSequence(flat_concat(context, data), table, rank if is_known else None)


def erased(context: OpContext, sequence: RaggedSequence, position: int) -> RaggedSequence:
    """Without the element at a position from ``counted``."""
    first, _ = _split(context, sequence, sequence.shapes, position)
    behind = binary_scalar(context, "add", position, 1)
    _, last = _split(context, sequence, sequence.shapes, behind)
    data = flat_concat(context, [first[0], last[0]])
    return RaggedSequence(data, concat(context, [first[1], last[1]], 0), sequence.rank)


def _split(
    context: OpContext, sequence: RaggedSequence, shapes: int, position: int
) -> tuple[list[int], list[int]]:
    """Data and shapes of the elements before a position, and of those from it on."""
    counts = counts_of(context, sequence.shapes)
    length = length_of(context, sequence)
    before = context.add("less", iota(context, length), position)
    own = context.add("select", before, counts, context.scalar("i64", 0))
    (place,) = context.read_dims(position)
    (start,) = context.read_dims(reduce(context, own, "sum", (0,)))
    (total,) = shape_of(context, sequence.data)
    return (
        [flat_slice(context, sequence.data, 0, start), slice_axis(context, shapes, 0, 0, place)],
        [
            flat_slice(context, sequence.data, start, total - start),
            slice_axis(context, shapes, 0, place, length - place),
        ],
    )


def _wider(context: OpContext, table: int, row: int) -> Dim:
    return dim_max(context.shape_of(table)[1], context.shape_of(row)[1])


def _padded(context: OpContext, table: int, width: Dim) -> int:
    """A table of shapes with -1 behind, up to a rank."""
    length, own = context.shape_of(table)
    if own == width:
        return table
    return concat(context, [table, full(context, "i64", -1, (length, width - own))], 1)
