"""Masks of keys, in the forms that ONNX Runtime's attention ops take.

In: a mask of 0 and 1, or lengths. Out: a tensor that is added to scores [B, H, S, T]. Not done
here: attention (``attention_heads``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    cast,
    iota,
    reshape,
    size_scalar,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.families.attention.attention_heads import additive, is_positive
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError


def padding_mask(context: OpContext, mask: int, like: int, batch: Dim, keys: Dim) -> int:
    """What a node's mask of keys adds; ``like`` has the type of the scores.

    [B, T] and [B, S, T] hold 0 for a key that is left out; [B] holds how many keys there are;
    [2 B] that and then where they begin; [3 B + 2] begins with how many keys there are.
    """
    filler = context.float_attribute("mask_filter_value", -10000.0)
    rank = context.rank_of(mask)
    if rank == 1:
        return additive(context, _between(context, mask, batch, keys), like, filler)
    if rank == 2:
        kept = unsqueeze(context, is_positive(context, mask), (1, 2))
    elif rank == 3:
        kept = unsqueeze(context, is_positive(context, mask), (1,))
    elif rank == 4:
        raise Unsupported("a mask of four dimensions, which ONNX Runtime has for GPUs alone")
    else:
        raise OpTypeError("a mask of rank 1 to 3", context.type_of(mask))
    return additive(context, kept, like, filler)


def _between(context: OpContext, lengths: int, batch: Dim, keys: Dim) -> int:
    """[B, 1, 1, T]: whether each key is one of those that a vector of lengths names."""
    lengths = cast(context, lengths, "i64")
    place = reshape(context, iota(context, keys), (1, 1, 1, keys))
    ends = reshape(context, slice_axis(context, lengths, 0, 0, batch), (batch, 1, 1, 1))
    kept = context.add("less", place, ends)
    starts = _starts(context, lengths, batch)
    if starts is None:
        return kept
    column = reshape(context, starts, (batch, 1, 1, 1))
    return context.add("logical_and", kept, context.add("less_equal", column, place))


def _starts(context: OpContext, lengths: int, batch: Dim) -> int | None:
    """Where the keys of each sample begin, which the second half of [2 B] says; None for 0."""
    (count,) = context.shape_of(lengths)
    both = dim_mul(batch, 2)
    if count == both:
        return slice_axis(context, lengths, 0, batch, batch)
    if count == batch or (isinstance(count, int) and isinstance(batch, int)):
        return None
    last = context.add("sub", size_scalar(context, count), context.scalar("i64", 1))
    place = context.add("add", iota(context, batch), size_scalar(context, batch))
    found = context.add("gather", lengths, context.add("min", place, last), axis=0)
    is_given = context.add("equal", size_scalar(context, count), size_scalar(context, both))
    return context.add("select", is_given, found, context.scalar("i64", 0))
