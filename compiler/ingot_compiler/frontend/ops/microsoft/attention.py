"""ONNX Runtime's Attention, of floats and of quantized weights.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce as fold

from ingot_compiler.frontend.build.compose import concat, reshape, slice_axis, unsqueeze
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim, sizes_of
from ingot_compiler.frontend.families.attention.attention_heads import (
    attend,
    merge_heads,
    split_heads,
)
from ingot_compiler.frontend.families.weights.q_linear import floats
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.frontend.ops.mat_mul import product
from ingot_compiler.frontend.ops.microsoft.multi_head_attention import attention_masks
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def _attention(context: OpContext) -> Sequence[int]:
    """Attention with the projections of queries, keys and values.

    In: x[B, S, C], weights [C, q + k + v], perhaps their bias, masks, a past [2, B, heads, P, D].
    Out: [B, S, v], the keys and values with their past.
    """
    if context.bool_attribute("do_rotary"):
        raise Unsupported("a rotation of queries and keys, which ONNX Runtime has for GPUs alone")
    if context.bool_attribute("past_present_share_buffer") or context.optional(6) is not None:
        raise Unsupported("a cache that is written in place, which ONNX Runtime has for GPUs alone")
    q, k, v = _projected(context)
    past = context.optional(4)
    if past is not None:
        k, v = (
            concat(context, [_of_past(context, past, position), x], 2)
            for position, x in enumerate((k, v))
        )
    result, _ = attend(context, q, k, v, attention_masks(context, q, k, context.optional(3)))
    present = ABSENT
    if context.wants(1):
        present = concat(context, [unsqueeze(context, x, (0,)) for x in (k, v)], 0)
    return merge_heads(context, result), present


def _projected(context: OpContext) -> list[int]:
    """q, k and v per head."""
    x, bias = context.operand(0), context.optional(2)
    heads = context.int_attribute("num_heads", 0)
    merged = product(context, x, context.operand(1))
    if bias is not None:
        merged = context.add("add", merged, bias)
    start: Dim = 0
    parts: list[int] = []
    for size in _sizes(context, merged):
        parts.append(split_heads(context, slice_axis(context, merged, 2, start, size), heads))
        start = dim_add(start, size)
    return parts


def _sizes(context: OpContext, merged: int) -> Sequence[Dim]:
    """The hidden sizes of q, k and v."""
    total = sizes_of(context, merged, 3)[2]
    each = dim_floordiv(total, 3)
    given = context.ints_attribute("qkv_hidden_sizes")
    sizes: Sequence[Dim] = [each] * 3 if given is None else given
    wanted = message("three hidden sizes that add up to ", total)
    if len(sizes) != 3:
        raise OpTypeError(wanted, sizes)
    known = fold(dim_add, sizes)
    require_dim(context, dim_add(total, dim_mul(known, -1)), wanted, known)
    return sizes


def _of_past(context: OpContext, past: int, position: int) -> int:
    """The keys (0) or the values (1) of [2, B, heads, P, D]."""
    if context.rank_of(past) != 5:
        raise OpTypeError("[2, batch, heads, past, size]", context.type_of(past))
    shape = context.shape_of(past)[1:]
    return reshape(context, slice_axis(context, past, 0, position, 1), shape)


ATTENTION = OnnxOp(
    "Attention",
    _attention,
    signature="input weights bias? mask_index? past? attention_bias? past_sequence_length? -> "
    "output present?; do_rotary:int mask_filter_value:float num_heads!:int "
    "past_present_share_buffer:int qkv_hidden_sizes:ints rotary_embedding_dim:int scale:float "
    "unidirectional:int",
)


def _q_attention(context: OpContext) -> Sequence[int]:
    """Attention whose projections are products of quantized operands.

    In: 8-bit x[B, S, C] and weights [C, 3 * hidden], their bias, scales, perhaps a mask, zero
    points and a past. Out: what ``Attention`` gives of what they stand for.
    """
    x = floats(context, context.operand(0), context.operand(3), context.optional(6))
    w = floats(context, context.operand(1), context.operand(4), context.optional(7), axis=1)
    operands = (x, w, context.operand(2), context.optional(5), context.optional(8))
    return ATTENTION.translate(replace(context, operands=operands))


OPS = (
    ATTENTION,
    OnnxOp(
        "QAttention",
        _q_attention,
        signature="input weight bias input_scale weight_scale mask_index? input_zero_point? "
        "weight_zero_point? past? -> output present?; do_rotary:int mask_filter_value:float "
        "num_heads!:int past_present_share_buffer:int scale:float unidirectional:int",
    ),
)
