"""A cache that holds all keys of a decoder's attention, whose samples have lengths of their own.

In: the past [B, groups, P, D] and new rows [B, groups, S, D] of a node of GroupQueryAttention. Out:
the present. Not done here: caches of the size of a window (``window_cache``).

The present holds max(P, total) rows: the past of each sample, the new rows, and zeros.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    clamp,
    concat,
    range_mask,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.operand_sizes import read_size
from ingot_compiler.frontend.families.attention.cache_lengths import CacheLengths
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.sizes.ranges import maximum
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WholeCache:
    """``keys``: the rows of the present, the first ``kept`` of which each sample has from the
    past."""

    lengths: CacheLengths
    keys: Dim
    kept: Dim

    @classmethod
    def of(cls, context: OpContext, lengths: CacheLengths) -> WholeCache:
        """That of a node."""
        past = context.optional(3)
        if past is None:
            return cls(lengths, maximum(lengths.most, lengths.new), 0)
        held = context.shape_of(past)[2]
        if held == 0:
            return cls(lengths, lengths.most, 0)
        batch = context.shape_of(lengths.past)[0]
        kept = _least(context, reshape(context, lengths.past, (batch,)), held)
        return cls(lengths, maximum(lengths.most, held), kept)

    def places(self, context: OpContext) -> int:
        """i64 [1, 1, 1, keys]: which position each row is."""
        return range_mask(context, (1, 1, 1, self.keys), 3)

    def extended(self, context: OpContext, new: int, past: int | None) -> tuple[int, int]:
        """[B, groups, keys, D]: what queries read, and the present, which is the same. The rows
        that every sample has from the past stay as they are, so that they need not be moved
        (``passes.hold_state``)."""
        present = self._present(context, new, past)
        return present, present

    def _present(self, context: OpContext, new: int, past: int | None) -> int:
        if past is None:
            return _padded(context, new, self.keys)
        held, kept, lengths = context.shape_of(past)[2], self.kept, self.lengths
        rest = self.keys - kept
        own = _padded(context, slice_axis(context, past, 2, kept, held - kept), rest)
        own_shape = context.shape_of(own)
        numbers = range_mask(context, own_shape, 2)
        place = context.add("add", numbers, size_scalar(context, kept))
        offset = context.add("sub", place, lengths.past)
        inside = context.add("less", place, lengths.total)
        zero, last = context.scalar("i64", 0), size_scalar(context, lengths.new - 1)
        wide = broadcast_to(context, clamp(context, offset, zero, last), own_shape)
        moved = context.add("gather_elements", new, wide, axis=2)
        nothing = context.scalar(context.dtype_of(new), 0)
        behind = context.add("select", inside, moved, nothing)
        tail = context.add("select", context.add("less", place, lengths.past), own, behind)
        return concat(context, [slice_axis(context, past, 2, 0, kept), tail], 2)


def _least(context: OpContext, lengths: int, most: Dim) -> Dim:
    """The least of some lengths, at least 0 and at most ``most``."""
    bound = reshape(context, size_scalar(context, most), (1,))
    least = reduce(context, concat(context, [lengths, bound], 0), "min", (0,))
    return read_size(
        context, clamp(context, least, context.scalar("i64", 0), size_scalar(context, most))
    )


def _padded(context: OpContext, x: int, rows: Dim) -> int:
    """[B, groups, held, D] with zeros behind its rows."""
    missing = dim_add(rows, dim_mul(context.shape_of(x)[2], -1))
    if missing == 0:
        return x
    zero = context.scalar(context.dtype_of(x), 0)
    return context.add("pad", x, zero, before=(0,) * 4, after=(0, 0, missing, 0), mode="constant")
