"""ONNX Runtime EmbedLayerNormalization: the layer norm of the sum of three embeddings.

In: word, perhaps segment and position numbers, tables, scale, shift, perhaps a mask. Out: core
``gather``, ``add``, ``layer_norm``; the number of ones in each row of the mask. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import cast, full, iota, reduce, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of


def _translate(context: OpContext) -> Sequence[int]:
    words = context.operand(0)
    sizes_of(context, words, 2)
    total = as_onnx(context, "Gather", context.operand(2), words)
    total = context.add("add", total, _positions(context, words))
    segments, table = context.optional(1), context.optional(4)
    if segments is not None and table is not None:
        total = context.add("add", total, as_onnx(context, "Gather", table, segments))
    epsilon = context.float_attribute("epsilon", 1e-12)
    gamma, beta = context.operand(5), context.operand(6)
    result = as_onnx(context, "LayerNormalization", total, gamma, beta, axis=-1, epsilon=epsilon)
    return result, _mask_index(context, words), total


def _positions(context: OpContext, words: int) -> int:
    """The rows of the table of positions: 0, 1, .. where none are given."""
    table, given = context.operand(3), context.optional(8)
    if given is not None:
        return as_onnx(context, "Gather", table, given)
    length = context.shape_of(words)[1]
    return as_onnx(context, "Gather", table, reshape(context, iota(context, length), (1, length)))


def _mask_index(context: OpContext, words: int) -> int:
    """The number of ones in each row of the mask, 0 without a mask."""
    mask, batch = context.optional(7), context.shape_of(words)[0]
    if mask is None:
        return full(context, "i32", 0, (batch,))
    ones = context.add("equal", mask, context.scalar(context.dtype_of(mask), 1))
    return reduce(context, cast(context, ones, "i32"), "sum", (1,))


EMBED_LAYER_NORMALIZATION = OnnxOp(
    "EmbedLayerNormalization",
    _translate,
    signature="input_ids segment_ids? word_embedding position_embedding segment_embedding? gamma beta mask? "
    "position_ids? -> output mask_index? embedding_sum?; epsilon:float mask_index_type:int",
)
OPS = (EMBED_LAYER_NORMALIZATION,)
