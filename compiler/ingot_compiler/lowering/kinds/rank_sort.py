"""The order of few keys: each goes to the place that says how many come before it.

In: keys. Out: statements that store what is wanted of each key at its place. Not done here: many keys
(``radix_sort``).

All pairs are compared, in lanes: for some hundred keys that is less than the passes of a radix sort
over its counts.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, dim_min, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LetIndex, Reduce, Statement, Store

RANKED_MAX = 192
"""Keys up to which this is faster than passes."""
RANKED_WHOLE_MAX = 64
"""Keys up to which this is faster than leaving out those that are not wanted before."""


def rank_each(
    key_at: Callable[[Dim], Value],
    length: Dim,
    dtype: DType,
    stores: Callable[[Dim, Dim], tuple[Store, ...]],
    lanes: int,
) -> For:
    """``stores(place, number)`` for each of ``length`` keys, from the least on; of equals the earlier
    one comes first. Blocks of ``lanes`` keys are ranked together: whether another key is earlier is
    known of those outside of the block."""
    start, one, other = symbol("block") * lanes, symbol("one"), symbol("other")
    size = dim_min(lanes, length - start)
    own, met = Local("own", dtype), Local("met", dtype)
    is_below, is_equal = (Apply(name, (met, own), "bool") for name in ("less", "equal"))
    is_earlier = Apply("less", (FromIndex(other, "i32"), Local("number", "i32")), "bool")
    is_first = Apply("logical_and", (is_equal, is_earlier), "bool")

    def counted(name: str, extent: Dim, first: Dim, is_before: Value) -> Reduce:
        body = (Let("met", key_at(first + other)),)
        return Reduce(name, "sum", "other", extent, "i32", body, Apply("cast", (is_before,), "i32"))

    not_above = Apply("less_equal", (met, own), "bool")
    parts = (
        counted("earlier", start, 0, not_above),
        counted("together", size, start, Apply("logical_or", (is_below, is_first), "bool")),
        counted("later", length - start - size, start + size, is_below),
    )
    rank: Value = Constant(0, "i32")
    for part in parts:
        rank = Apply("add", (rank, Local(part.name, "i32")), "i32")
    body: tuple[Statement, ...] = (
        Let("own", key_at(start + one)),
        Let("number", FromIndex(one, "i32")),
        *parts,
        LetIndex("place", Apply("max", (rank, Constant(0, "i32")), "i32")),
        *stores(symbol("place"), start + one),
    )
    block = For("one", size, "vector", body)
    return For("block", ceil_div(length, lanes), "serial", (block,))
