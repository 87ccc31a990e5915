"""Strings as rows of bytes, and rows of bytes as strings.

In: a context, strings. Out: matrices; strings of the bytes that are picked. Not done here: what is
looked for in the bytes (the other files here).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    concat,
    full,
    iota,
    reduce,
    reshape,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.tensors.selection import positions_of_true
from ingot_compiler.ir.dims import Dim, dim_product

OUTSIDE = -1  # what a row has behind the end of its string


def shape_of_strings(context: OpContext, strings: Strings) -> tuple[Dim, ...]:
    """The shape of a tensor of strings."""
    return context.shape_of(strings.spans)[:-1]


def spans_of(context: OpContext, strings: Strings) -> int:
    """i64[count, 2]: where each begins and ends, in one dimension."""
    return reshape(context, strings.spans, (dim_product(shape_of_strings(context, strings)), 2))


def ends_of(context: OpContext, spans: int) -> tuple[int, int]:
    """i64[count]: begins and ends."""
    count = context.shape_of(spans)[0]
    first, last = (slice_axis(context, spans, 1, at, 1) for at in range(2))
    return reshape(context, first, (count,)), reshape(context, last, (count,))


def lengths_of(context: OpContext, strings: Strings) -> int:
    """i64[count]: bytes of each."""
    begin, end = ends_of(context, spans_of(context, strings))
    return context.add("sub", end, begin)


def longest(context: OpContext, lengths: int) -> Dim:
    """The greatest of some lengths, 0 where there are none."""
    zero = full(context, "i64", 0, (1,))
    (size,) = context.read_dims(reduce(context, concat(context, [lengths, zero], 0), "max", (0,)))
    return size


def rows_of(context: OpContext, strings: Strings, width: Dim) -> int:
    """i32[count, width]: the first bytes of each, ``OUTSIDE`` behind its end."""
    begin, end = ends_of(context, spans_of(context, strings))
    count = context.shape_of(begin)[0]
    places = context.add("add", reshape(context, begin, (count, 1)), iota(context, width))
    inside = context.add("less", places, reshape(context, end, (count, 1)))
    # A pool of no bytes has one to look at, too.
    pool = concat(context, [strings.pool, full(context, "u8", 0, (1,))], 0)
    safe = context.add("select", inside, places, context.scalar("i64", 0))
    found = cast(context, context.add("gather", pool, safe, axis=0), "i32")
    return context.add("select", inside, found, context.scalar("i32", OUTSIDE))


def repeats(context: OpContext, counts: int) -> tuple[int, int]:
    """For each of as many places as ``counts``, i64[n], has in all: whose it is, and which of its."""
    (total,) = context.read_dims(reduce(context, counts, "sum", (0,)))
    starts = context.add("cumsum", counts, axis=0, exclusive=True, reverse=False)
    own = positions_of_true(context, context.add("less", context.scalar("i64", 0), counts))
    firsts = context.add("gather", starts, own, axis=0)
    flags = context.add(
        "scatter_elements", full(context, "i64", 0, (total,)), firsts,
        full(context, "i64", 1, context.shape_of(own)), axis=0, reduction="none",
    )  # fmt: skip
    running = context.add("cumsum", flags, axis=0, exclusive=False, reverse=False)
    owner = context.add("gather", own, binary_scalar(context, "add", running, -1), axis=0)
    return owner, context.add(
        "sub", iota(context, total), context.add("gather", starts, owner, axis=0)
    )
