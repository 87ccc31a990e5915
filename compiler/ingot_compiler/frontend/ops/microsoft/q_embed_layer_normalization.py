"""ONNX Runtime QEmbedLayerNormalization: EmbedLayerNormalization of quantized tables.

In: word and perhaps segment numbers; tables, scale and shift of 8 bits, each with a scale and a
zero point; perhaps a mask. Out: what ``EmbedLayerNormalization`` gives of what they stand for. Not
done here: that (``embed_layer_normalization``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import floats
from ingot_compiler.frontend.ops.microsoft.embed_layer_normalization import (
    EMBED_LAYER_NORMALIZATION as EMBED,
)

_QUANTIZED = range(2, 7)  # tables of words, positions, segments; scale, shift
_SCALES, _ZEROS = 6, 11  # how far behind each its scale and zero point are


def _translate(context: OpContext) -> Sequence[int]:
    operands = [context.optional(0), context.optional(1)]
    operands += [_floats(context, position) for position in _QUANTIZED]
    operands += [context.optional(7)]
    wanted = (*context.wanted, False)
    return EMBED.translate(replace(context, operands=tuple(operands), wanted=wanted))[:2]


def _floats(context: OpContext, position: int) -> int | None:
    if context.optional(position) is None:
        return None
    operands = (context.operand(position + more) for more in (0, _SCALES, _ZEROS))
    return floats(context, *operands)


OPS = (
    OnnxOp(
        "QEmbedLayerNormalization",
        _translate,
        signature="input_ids segment_ids? word_embedding_quant position_embedding_quant "
        "segment_embedding? gamma_quant beta_quant mask? word_embedding_scale position_embedding_scale "
        "segment_embedding_scale? gamma_scale beta_scale word_embedding_zero_point "
        "position_embedding_zero_point segment_embedding_zero_point? gamma_zero_point "
        "beta_zero_point -> layernorm_out mask_index_out; epsilon:float",
    ),
)
