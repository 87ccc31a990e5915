"""ONNX Attention (opset 23): the core op where it is plain, else ONNX's own function body.

In: Q, K, V in three or four dimensions, perhaps a mask, and a past. Out: core ``attention``, keys
and values with their past; else the translated body. Not done here: attention that exporters write
as several nodes (``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from ingot_compiler.frontend.build.compose import (
    cast,
    concat,
    range_mask,
    reshape,
    size_scalar,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.attention.attention_heads import additive
from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    q, k, v = (context.operand(position) for position in range(3))
    is_flat = context.rank_of(q) == 3
    if is_flat:
        heads, groups = (context.int_attribute(f"{name}_num_heads", 0) for name in ("q", "kv"))
        q, k, v = _heads(context, q, heads), _heads(context, k, groups), _heads(context, v, groups)
    past = context.optional(_PAST)
    if past is not None:
        k = concat(context, (past, k), 2)
        v = concat(context, (context.operand(_PAST + 1), v), 2)
    result = _attention(context, q, k, v, past)
    if not is_flat:
        return result, k, v
    batch, heads_size, rows, depth = context.shape_of(result)
    merged = transpose(context, result, (0, 2, 1, 3))
    return reshape(context, merged, (batch, rows, dim_mul(heads_size, depth))), k, v


def _attention(context: OpContext, q: int, k: int, v: int, past: int | None) -> int:
    """[B, heads, S, D]: a row that the mask leaves nothing of gives 0."""
    size = context.shape_of(q)[3]
    assert isinstance(size, int)
    scale = context.float_attribute("scale", 1 / sqrt(size) if size else 1.0)
    mask, causal = context.optional(3), context.bool_attribute("is_causal")
    lengths = context.optional(_LENGTHS)
    if lengths is not None:
        mask, causal = _mask_of_lengths(context, q, k, lengths), False
    elif causal and past is not None:
        mask, causal = _causal_mask(context, q, k, past), False
    operands = (q, k, v) if mask is None else (q, k, v, mask)
    return context.add("attention", *operands, scale=scale, causal=causal, nan_to_zero=True)


def _causal_mask(context: OpContext, q: int, k: int, past: int) -> int:
    """[1, 1, S, T]: a query sees the keys of the past, and those of its own call up to its own."""
    shape = (1, 1, context.shape_of(q)[2], context.shape_of(k)[2])
    keys, queries = range_mask(context, shape, 3), range_mask(context, shape, 2)
    behind = context.add("add", queries, size_scalar(context, context.shape_of(past)[2]))
    return context.add("less_equal", keys, behind)


def _mask_of_lengths(context: OpContext, q: int, k: int, lengths: int) -> int:
    """[B, 1, S or 1, T]: the keys that each sample has, of a cache that has room for more; where it
    is causal, the last query sees all of them. With the node's own mask."""
    causal, mask = context.bool_attribute("is_causal"), context.optional(3)
    batch, _, rows, _ = context.shape_of(q)
    shape = (batch, 1, rows if causal else 1, context.shape_of(k)[2])
    column = reshape(context, cast(context, lengths, "i64"), (batch, 1, 1, 1))
    keys = range_mask(context, shape, 3)
    kept = context.add("less", keys, column)
    if causal:
        before = context.add("sub", column, size_scalar(context, rows))
        own = context.add("add", before, range_mask(context, shape, 2))
        kept = context.add("logical_and", kept, context.add("less_equal", keys, own))
    if mask is None:
        return kept
    if context.dtype_of(mask) == "bool":
        return context.add("logical_and", mask, kept)
    return context.add("add", mask, additive(context, kept, mask, float("-inf")))


def _heads(context: OpContext, x: int, heads: int) -> int:
    """[B, S, heads * D] as [B, heads, S, D]."""
    batch, rows, size = context.shape_of(x)
    if heads < 1 or not isinstance(size, int) or size % heads:
        raise OpTypeError(f"a last dimension that {heads} heads divide", context.type_of(x))
    return transpose(
        context, reshape(context, x, (batch, rows, heads, size // heads)), (0, 2, 1, 3)
    )


_PAST, _LENGTHS, _SCORES = 4, 6, 3  # operands, a result
_PLAIN_ATTRIBUTES = frozenset(
    ("scale", "is_causal", "q_num_heads", "kv_num_heads", "softcap", "qk_matmul_output_mode")
)


def _is_plain(context: OpContext) -> bool:
    """No cap, scores; sizes of heads known; caches that are given and returned; causal only without
    a mask (ONNX aligns them its own way); lengths of samples only without a past, and with a mask
    of all keys."""
    values, mask = [context.operand(position) for position in range(3)], context.optional(3)
    dtype, rank = context.dtype_of(values[0]), context.rank_of(values[0])
    causal = context.bool_attribute("is_causal")
    return (
        _suits_lengths(context, mask)
        and (context.optional(_PAST) is None) == (context.optional(_PAST + 1) is None)
        and not context.wants(_SCORES)
        and not context.attributes.get("softcap")
        and set(context.attributes) <= _PLAIN_ATTRIBUTES
        and {context.dtype_of(value) for value in values} == {dtype}
        and dtype != "f64"  # the kernel computes in f32
        and {context.rank_of(value) for value in values} == {rank}
        and rank in (3, 4)
        and all(isinstance(context.shape_of(value)[-1], int) for value in values)
        and (mask is None or context.dtype_of(mask) in ("bool", dtype))
        and (mask is None or not causal or context.optional(_LENGTHS) is not None)
    )


def _suits_lengths(context: OpContext, mask: int | None) -> bool:
    if context.optional(_LENGTHS) is None:
        return True
    own = None if mask is None else context.shape_of(mask)[-1:]
    keys = context.shape_of(context.operand(1))[-2:-1]
    return context.optional(_PAST) is None and own in (None, keys)


OPS = (OnnxOp("Attention", _translate, applies=_is_plain),)
