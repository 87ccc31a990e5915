"""How many keys each sample of a batch has, before and after a call of a decoder's attention.

In: a node of GroupQueryAttention. Out: ``CacheLengths``. Not done here: the caches
(``whole_cache``, ``window_cache``).

A call whose new rows are all there is begins a prompt: no sample has a past then, and shorter ones
end early. Where the node says how many of its rows each sample really has, that tells its past.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    full,
    range_mask,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.operand_sizes import read_size
from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CacheLengths:
    """``past`` and ``total``: i64 [B, 1, 1, 1], the keys of each sample before and after this call;
    ``most``: those of the longest one after it; ``new``: the rows of this call."""

    past: int
    total: int
    most: Dim
    new: Dim

    def places(self, context: OpContext, axis: int) -> int:
        """i64 [B, .., S, ..], S along ``axis``: which position of its sample each new row is."""
        rows = range_mask(context, (1,) * axis + (self.new,) + (1,) * (3 - axis), axis)
        return context.add("add", self.past, rows)


def cache_lengths(context: OpContext, batch: Dim, new: Dim) -> CacheLengths:
    """The lengths of the cache for a node of ``batch`` samples with ``new`` rows each."""
    total = binary_scalar(context, "add", _of_samples(context, context.operand(5), batch), 1)
    most = read_size(context, reshape(context, context.operand(6), ()))
    own = context.optional(16)
    if context.optional(3) is None:
        past = full(context, "i64", 0, (batch, 1, 1, 1))
    elif own is not None:
        past = context.add("sub", total, _of_samples(context, own, batch))
    else:
        is_first = context.add("equal", size_scalar(context, new), size_scalar(context, most))
        before = context.add("sub", total, size_scalar(context, new))
        past = context.add("select", is_first, context.scalar("i64", 0), before)
    return CacheLengths(past, total, most, new)


def _of_samples(context: OpContext, counts: int, batch: Dim) -> int:
    return cast(context, reshape(context, counts, (batch, 1, 1, 1)), "i64")
