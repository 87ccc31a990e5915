"""Scaled dot-product attention over heads, for ops that fuse more than the core op has.

In: queries, keys and values per head, what masks them. Out: the heads' results, and the scores
where asked for. Not done here: the forms of operands and masks (``ops/microsoft``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from math import sqrt

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    cast,
    concat,
    range_mask,
    reshape,
    scaled,
    size_scalar,
    slice_axis,
    transpose,
    wide_float,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul, symbols_of
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Masks:
    """What is added to scores [B, H, S, T], and whether key t must not lie behind query s."""

    added: Sequence[int] = ()
    is_causal: bool = False

    def total(self, context: OpContext) -> int | None:
        """All that is added, in one tensor that broadcasts to the scores."""
        if not self.added:
            return None
        return fold(lambda left, right: context.add("add", left, right), self.added)


@dataclass(frozen=True, slots=True)
class Softmax:
    """``cap``: scores are cap * tanh(score / cap), 0 for none; ``sink``: a score [H, 1, 1] that
    takes a part of each row and has no value; ``wants_scores``: 1 for those before the softmax,
    2 for what it gives, 0 for none."""

    cap: float = 0.0
    sink: int | None = None
    wants_scores: int = 0


def split_heads(context: OpContext, x: int, heads: int) -> int:
    """[B, S, heads * D] as [B, heads, S, D]."""
    if context.rank_of(x) != 3:
        raise OpTypeError("[batch, sequence, hidden]", context.type_of(x))
    batch, rows, size = context.shape_of(x)
    if heads < 1 or (isinstance(size, int) and size % heads):
        raise OpTypeError(f"a last dimension that {heads} heads divide", context.type_of(x))
    wide = reshape(context, x, (batch, rows, heads, dim_floordiv(size, heads)))
    return transpose(context, wide, (0, 2, 1, 3))


def merge_heads(context: OpContext, x: int) -> int:
    """[B, heads, S, D] as [B, S, heads * D]."""
    batch, heads, rows, size = context.shape_of(x)
    return reshape(
        context, transpose(context, x, (0, 2, 1, 3)), (batch, rows, dim_mul(heads, size))
    )


def _scaled_queries(context: OpContext, q: int) -> tuple[int, float]:
    """Queries, and by what their scores are multiplied: the attribute ``scale``, 1 / sqrt(size of a
    head) where it is absent or 0. Where only a run knows that size, the queries are."""
    size, scale = context.shape_of(q)[3], context.float_attribute("scale", 0.0)
    if scale or size == 0:
        return q, scale or 1.0
    if isinstance(size, int):
        return q, 1 / sqrt(size)
    wide = wide_float(context.dtype_of(q))
    root = context.add("sqrt", size_scalar(context, size, wide))
    return cast(context, context.add("div", cast(context, q, wide), root), context.dtype_of(q)), 1.0


def attend(
    context: OpContext,
    q: int,
    k: int,
    v: int,
    masks: Masks,
    softmax: Softmax = Softmax(),  # noqa: B008 (a value)
) -> tuple[int, int | None]:
    """[B, H, S, E] of q[B, H, S, D], k[B, G, T, D], v[B, G, T, E], and the scores."""
    (q, scale), mask = _scaled_queries(context, q), masks.total(context)
    is_plain = not (softmax.cap or softmax.wants_scores) and softmax.sink is None
    if is_plain and _suits_kernel(context, q, v):
        operands = (q, k, v) if mask is None else (q, k, v, mask)
        causal = masks.is_causal
        return (
            context.add("attention", *operands, scale=scale, causal=causal, nan_to_zero=True),
            None,
        )
    groups, heads = context.shape_of(k)[1], context.shape_of(q)[:3]
    columns = transpose(context, k, (0, 1, 3, 2))
    products = context.add("matmul", _with_rows_of_group(context, q, groups), columns)
    scores = scaled(context, _with_heads(context, products, heads), scale)
    if softmax.cap:
        bounded = context.add("tanh", scaled(context, scores, 1 / softmax.cap))
        scores = scaled(context, bounded, softmax.cap)
    if masks.is_causal:
        scores = _causal(context, scores)
    if mask is not None:
        scores = context.add("add", scores, mask)
    shares = _shares(context, scores, softmax.sink)
    wanted = {1: scores, 2: shares}.get(softmax.wants_scores)
    result = context.add("matmul", _with_rows_of_group(context, shares, groups), v)
    return _with_heads(context, result, heads), wanted


def _suits_kernel(context: OpContext, q: int, v: int) -> bool:
    """Whether the kernel of the core op takes the sizes and types: it computes in f32, over a
    number of keys that shapes of inputs say."""
    keys, size = context.shape_of(v)[2:]
    is_computed = any(name in context.translation.makers for name in symbols_of(keys))
    return isinstance(size, int) and not is_computed and context.dtype_of(q) != "f64"


def _with_rows_of_group(context: OpContext, x: int, groups: Dim) -> int:
    """[B, H, S, N] as [B, G, H / G * S, N]: the rows of all heads that read the same keys, which
    are not repeated."""
    batch, heads, rows, size = context.shape_of(x)
    if groups == heads:
        return x
    together = dim_mul(dim_floordiv(heads, groups), rows)
    return reshape(context, x, (batch, groups, together, size))


def _with_heads(context: OpContext, x: int, heads: Sequence[Dim]) -> int:
    """[B, G, H / G * S, N] as [B, H, S, N], of which ``heads`` are the first three."""
    shape = (*heads, context.shape_of(x)[3])
    return x if context.shape_of(x) == shape else reshape(context, x, shape)


def _causal(context: OpContext, scores: int) -> int:
    shape = context.shape_of(scores)
    keys, queries = range_mask(context, shape, 3), range_mask(context, shape, 2)
    dtype = context.dtype_of(scores)
    outside = context.scalar(dtype, float("-inf"))
    return context.add("select", context.add("less_equal", keys, queries), scores, outside)


def _shares(context: OpContext, scores: int, sink: int | None) -> int:
    """The softmax of each row, a share of which goes to the sink."""
    if sink is None:
        return context.add("softmax", scores, axis=3)
    *rows, keys = context.shape_of(scores)
    column = broadcast_to(context, sink, (*rows, 1))
    shares = context.add("softmax", concat(context, [scores, column], 3), axis=3)
    return slice_axis(context, shares, 3, 0, keys)


def additive(context: OpContext, kept: int, like: int, filler: float) -> int:
    """0 where ``kept``, else ``filler``, in the type of ``like``."""
    dtype = context.dtype_of(like)
    return context.add("select", kept, context.scalar(dtype, 0.0), context.scalar(dtype, filler))


def is_positive(context: OpContext, mask: int) -> int:
    """Whether elements of an integer mask are > 0."""
    return context.add("less", context.scalar(context.dtype_of(mask), 0), mask)


def lowest(context: OpContext, x: int) -> float:
    """The number that stands for minus infinity in masks: -65504 for f16, else that of f32."""
    return -65504.0 if context.dtype_of(x) == "f16" else -3.4028234663852886e38
