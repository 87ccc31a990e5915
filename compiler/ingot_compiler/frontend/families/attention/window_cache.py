"""A cache that holds little more than the window of a decoder's attention, and evicts the rest.

In: the past [B, groups, C, D] and new rows [B, groups, S, D] of a node of GroupQueryAttention with
``sliding_window_cache``. Out: the rows that queries read, which positions they are, and the
present. Not done here: caches of all keys (``whole_cache``).

Row i of a cache is position e + i of its sample. Of T positions the first e(T) are evicted, that
is G * (max(T - W, 0) div G) for a window W and G = C - W + 1. Rows behind the last position are
unspecified: a past may have NaN there, a present has zeros. Queries read the new rows and the first
M rows of the past, as many as the longest sample may have: none in a prompt.

The past is read once, where its rows that are none become zeros on their way to the ``concat``
behind the new rows, so that a session may keep the present in its place (``passes.hold_whole``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    clamp,
    concat,
    range_mask,
    size_scalar,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.operand_sizes import require_dim, sizes_of
from ingot_compiler.frontend.families.attention.cache_lengths import CacheLengths
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.message import message
from ingot_compiler.ir.sizes.ranges import maximum, minimum
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WindowCache:
    """``held``: C; ``most``: M; ``slack``: G. ``rows``: i64 [B, 1, S + M, 1], the position of each
    new row and of those of the past, the number of all positions for a row that is none. ``is_new``:
    bool [B, 1, S, 1], and ``is_past``: bool [B, 1, C, 1], which rows are there."""

    lengths: CacheLengths
    held: Dim
    most: Dim
    window: int
    slack: int
    rows: int
    is_new: int
    is_past: int

    @classmethod
    def of(cls, context: OpContext, lengths: CacheLengths) -> WindowCache:
        """That of a node."""
        past, values = context.optional(3), context.optional(4)
        window = context.int_attribute("local_window_size", -1)
        if past is None or values is None or window < 1:
            raise Unsupported("a cache of the size of the window without a past or a window")
        held = sizes_of(context, past, 4)[2]
        for size in (held, sizes_of(context, values, 4)[2]):
            # All layers then share their masks, and a session asks for one size.
            context.translation.same_names.compare_alike(f"caches of a window of {window}", size)
        beyond = maximum(held, window) - held
        expected = message("a cache of at least ", window, " rows, as the window has")
        require_dim(context, beyond, expected, held)
        slack = size_scalar(context, maximum(held, window) - window + 1)
        # Lengths of its own tell of a sample that has no new rows.
        has_own = context.optional(16) is not None
        most = minimum(held, maximum(lengths.most - (0 if has_own else lengths.new), 0))
        evicted = _evicted(context, lengths.past, window, slack)
        before = context.add("add", evicted, range_mask(context, (1, 1, held, 1), 2))
        is_past = context.add("less", before, lengths.past)
        before = context.add("select", is_past, before, lengths.total)
        new = lengths.places(context, 2)
        is_new = context.add("less", new, lengths.total)
        rows = concat(context, [new, slice_axis(context, before, 2, 0, most)], 2)
        return cls(lengths, held, most, window, slack, rows, is_new, is_past)

    def places(self, context: OpContext) -> int:
        """i64 [B, 1, 1, S + M]: which position each row that queries read is."""
        return transpose(context, self.rows, (0, 1, 3, 2))

    def extended(self, context: OpContext, new: int, past: int | None) -> tuple[int, int]:
        """The rows that queries read [B, groups, S + M, D], and the present [B, groups, C, D]."""
        assert past is not None
        nothing = context.scalar(context.dtype_of(new), 0)
        new = context.add("select", self.is_new, new, nothing)
        before = context.add("select", self.is_past, past, nothing)
        both = concat(context, [new, before], 2)
        read = slice_axis(context, both, 2, 0, self.lengths.new + self.most)
        place, source = self._sources(context)
        wide = broadcast_to(context, source, context.shape_of(past))
        moved = context.add("gather_elements", both, wide, axis=2)
        is_row = context.add("less", place, self.lengths.total)
        return read, context.add("select", is_row, moved, nothing)

    def _sources(self, context: OpContext) -> tuple[int, int]:
        """i64 [B, 1, C, 1]: which position each row of the present is, and which of the new rows and
        of the past."""
        lengths, new = self.lengths, size_scalar(context, self.lengths.new)
        before, after = (
            _evicted(context, count, self.window, self.slack)
            for count in (lengths.past, lengths.total)
        )
        place = context.add("add", after, range_mask(context, (1, 1, self.held, 1), 2))
        of_past = context.add("add", new, context.add("sub", place, before))
        of_new = context.add("sub", place, lengths.past)
        is_past = context.add("less", place, lengths.past)
        source = context.add("select", is_past, of_past, of_new)
        last = size_scalar(context, lengths.new + self.held - 1)
        return place, clamp(context, source, context.scalar("i64", 0), last)


def _evicted(context: OpContext, count: int, window: int, slack: int) -> int:
    """How many of ``count`` positions a cache no longer holds."""
    beyond = binary_scalar(context, "max", binary_scalar(context, "sub", count, window), 0)
    return context.add("mul", context.add("div", beyond, slack), slack)
