"""Two tensors of strings in one shape, and whether they are equal.

In: a context, strings. Out: strings, a tensor of bools. Not done here: strings that a model writes
down (``lookup``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import broadcast_to, reduce, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import (
    lengths_of,
    longest,
    rows_of,
    shape_of_strings,
)
from ingot_compiler.ir.dims import dim_max
from ingot_compiler.ir.rules.shapes import broadcast_shapes


def alike(context: OpContext, left: Strings, right: Strings) -> tuple[Strings, Strings]:
    """Both in the shape that ONNX's broadcasting gives."""
    shapes = [shape_of_strings(context, strings) for strings in (left, right)]
    shape = broadcast_shapes(*shapes)
    both = [
        Strings(
            broadcast_to(context, _of_rank(context, strings, len(shape)), (*shape, 2)), strings.pool
        )
        for strings in (left, right)
    ]
    return both[0], both[1]


def _of_rank(context: OpContext, strings: Strings, rank: int) -> int:
    shape = context.shape_of(strings.spans)
    return reshape(context, strings.spans, (*(1,) * (rank + 1 - len(shape)), *shape))


def equal(context: OpContext, left: Strings, right: Strings) -> int:
    """Whether strings are equal, with broadcasting."""
    width = dim_max(*(longest(context, lengths_of(context, each)) for each in (left, right)))
    rows: list[int] = []
    for strings in (left, right):
        shape = shape_of_strings(context, strings)
        own = rows_of(context, strings, width)
        rows.append(reshape(context, own, (*shape, width)))
    same = context.add("equal", *rows)
    return reduce(context, same, "min", (context.rank_of(same) - 1,))
