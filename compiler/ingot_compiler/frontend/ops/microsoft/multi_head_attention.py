"""ONNX Runtime MultiHeadAttention: attention of projected queries, keys and values.

In: q[B, S, hidden] with k and v of the same form, packed k and v [B, T, heads, 2, D], packed
[B, S, heads, 3, D], or k and v per head [B, heads, T, D]; perhaps a bias of the projections, masks,
a past. Out: [B, S, hidden], the keys and values with their past, the scores. Not done here: caches
that are written in place (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    concat,
    range_mask,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import with_size
from ingot_compiler.frontend.families.attention.attention_heads import (
    Masks,
    Softmax,
    additive,
    attend,
    lowest,
    merge_heads,
    split_heads,
)
from ingot_compiler.frontend.families.attention.padding_masks import padding_mask
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError, require


def _translate(context: OpContext) -> Sequence[int]:
    if context.optional(8) is not None or context.optional(9) is not None:
        raise Unsupported("a cache that is written in place, which ONNX Runtime has for GPUs alone")
    q, k, v = projected_heads(context)
    past = [context.optional(6), context.optional(7)]
    k, v = (
        x if before is None else concat(context, [before, x], 2)
        for x, before in zip((k, v), past, strict=True)
    )
    masks = attention_masks(context, q, k, context.optional(4))
    softmax = Softmax(wants_scores=int(context.wants(3)))
    result, scores = attend(context, q, k, v, masks, softmax)
    return merge_heads(context, result), k, v, ABSENT if scores is None else scores


def projected_heads(context: OpContext) -> tuple[int, int, int]:
    """q, k and v per head, with their biases."""
    heads = context.int_attribute("num_heads", 0)
    q, k, v = context.operand(0), context.optional(1), context.optional(2)
    if k is None:
        parts = _packed(context, q, 3)
    elif v is None:
        parts = [q, *_packed(context, k, 2)]
    else:
        parts = [q, k, v]
    parts = _biased(context, parts)
    for x in parts:
        require(context.rank_of(x) in (3, 4), "operands of rank 3 or 4", context.type_of(x))
    found = [x if context.rank_of(x) == 4 else split_heads(context, x, heads) for x in parts]
    return found[0], found[1], found[2]


def _packed(context: OpContext, x: int, count: int) -> list[int]:
    """[B, S, heads, count, D] as tensors [B, S, heads * D]."""
    expected = f"[batch, sequence, heads, {count}, size]"
    if context.rank_of(x) != 5:
        raise OpTypeError(expected, context.type_of(x))
    x = with_size(context, x, 3, count, expected)
    batch, rows, heads, _, size = context.shape_of(x)
    shape = (batch, rows, dim_mul(heads, size))
    return [
        reshape(context, slice_axis(context, x, 3, position, 1), shape) for position in range(count)
    ]


def _biased(context: OpContext, parts: Sequence[int]) -> list[int]:
    """What the bias adds to each; keys and values that are given per head have theirs already."""
    bias = context.optional(3)
    if bias is None:
        return list(parts)
    require(context.rank_of(bias) == 1, "a bias of rank 1", context.type_of(bias))
    start: Dim = 0
    found: list[int] = []
    for x in parts:
        if context.rank_of(x) != 3:
            found.append(x)
            continue
        size = context.shape_of(x)[2]
        found.append(context.add("add", x, slice_axis(context, bias, 0, start, size)))
        start = dim_add(start, size)
    return found


def attention_masks(context: OpContext, q: int, k: int, mask: int | None) -> Masks:
    """What the node's mask of keys, its bias of scores and ``unidirectional`` leave out."""
    batch, _, rows, _ = context.shape_of(q)
    keys = context.shape_of(k)[2]
    added: list[int] = []
    bias = context.optional(5)
    if mask is not None:
        added.append(padding_mask(context, mask, q, batch, keys))
    if bias is not None:
        added.append(bias)
    if not context.bool_attribute("unidirectional"):
        return Masks(added)
    if rows == keys:
        return Masks(added, is_causal=True)
    return Masks([*added, _causal_mask(context, q, k)])


def _causal_mask(context: OpContext, q: int, k: int) -> int:
    """[1, 1, S, T]: what leaves out keys behind each query, where the last ones belong together."""
    shape = (1, 1, context.shape_of(q)[2], context.shape_of(k)[2])
    before = size_scalar(context, dim_add(shape[3], dim_mul(shape[2], -1)))
    last = context.add("add", range_mask(context, shape, 2), before)
    kept = context.add("less_equal", range_mask(context, shape, 3), last)
    return additive(context, kept, q, lowest(context, q))


MULTI_HEAD_ATTENTION = OnnxOp(
    "MultiHeadAttention",
    _translate,
    signature="query key? value? bias? key_padding_mask? attention_bias? past_key? past_value? "
    "past_sequence_length? cache_indirection? -> output present_key? present_value? qk?; "
    "mask_filter_value:float num_heads!:int scale:float unidirectional:int",
)
OPS = (MULTI_HEAD_ATTENTION,)
