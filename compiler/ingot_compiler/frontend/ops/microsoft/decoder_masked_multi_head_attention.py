"""ONNX Runtime DecoderMaskedMultiHeadAttention: MultiHeadAttention of one token.

In: q[B, 1, hidden], k and v of the same form or those of an encoder per head, all of them packed;
perhaps masks, a past, a bias. Out: what ``MultiHeadAttention`` gives. Not done here: beams that
read each other's caches (reported as unsupported).

A past in a shared buffer has all its rows from the beginning. The present is the past with the row
behind its length replaced, and only the rows up to that are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import broadcast_to, reshape, size_scalar, slice_axis
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import read_size
from ingot_compiler.frontend.families.attention.attention_heads import Softmax, attend, merge_heads
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.frontend.ops.microsoft.multi_head_attention import (
    MULTI_HEAD_ATTENTION,
    attention_masks,
    projected_heads,
)
from ingot_compiler.ir.dims import Dim

_PLACES = (0, 1, 2, 10, 3, 4, 5, 6)
"""Where each operand of MultiHeadAttention is among this op's."""
_PASTS = (5, 6)


def _translate(context: OpContext) -> Sequence[int]:
    if context.optional(9) is not None:
        raise Unsupported("beams that read each other's caches")
    node = replace(context, operands=tuple(context.optional(place) for place in _PLACES))
    is_shared = context.bool_attribute("past_present_share_buffer")
    if not is_shared or context.optional(_PASTS[0]) is None:
        return MULTI_HEAD_ATTENTION.translate(node)
    q, *new = projected_heads(node)
    held = read_size(context, reshape(context, context.operand(7), ()))
    present_k, present_v = (
        _written(context, context.operand(place), row, held)
        for place, row in zip(_PASTS, new, strict=True)
    )
    k, v = (slice_axis(context, x, 2, 0, held + 1) for x in (present_k, present_v))
    softmax = Softmax(wants_scores=int(context.wants(3)))
    masks = attention_masks(node, q, k, node.optional(4))
    result, scores = attend(context, q, k, v, masks, softmax)
    return merge_heads(context, result), present_k, present_v, ABSENT if scores is None else scores


def _written(context: OpContext, past: int, row: int, place: Dim) -> int:
    """[B, heads, rows, D] with one row of each head replaced."""
    batch = context.shape_of(row)[0]
    places = broadcast_to(context, reshape(context, size_scalar(context, place), (1,)), (batch,))
    return as_onnx(context, "TensorScatter", past, row, places, opset=24, axis=2)


OPS = (
    OnnxOp(
        "DecoderMaskedMultiHeadAttention",
        _translate,
        signature="query key? value? mask_index? attention_bias? past_key? past_value? "
        "past_sequence_length? beam_width? cache_indirection? bias? -> output present_key? "
        "present_value? qk?; mask_filter_value:float num_heads!:int output_qk:int "
        "past_present_share_buffer:int scale:float",
    ),
)
