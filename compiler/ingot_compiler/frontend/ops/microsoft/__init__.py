"""The ops of ONNX Runtime's own domain, com.microsoft, that Ingot translates: rows of the
modules here, and one line each.

In: nothing. Out: ``FILES``, ``IN_ONNX_DOMAIN``, ``REFUSED``. Not done here: the table of all ops
(``op_table``). The op's file says what its nodes look like (``OnnxOp.signature``): the onnx package
has no schemas of this domain.
"""

FILES = {
    "Attention": "attention",
    "BiasAdd": "activations",
    "BiasGelu": "activations",
    "BiasSoftmax": "activations",
    "BiasSplitGelu": "activations",
    "CDist": "earlier_ops",
    "CausalConvWithState": "causal_conv_with_state",
    "ConvTransposeWithDynamicPads": "convolutions",
    "CropAndResize": "crop_and_resize",
    "DecoderMaskedMultiHeadAttention": "decoder_masked_multi_head_attention",
    "DequantizeLinear": "earlier_ops",
    "DynamicQuantizeLSTM": "dynamic_quantize_lstm",
    "DynamicQuantizeMatMul": "products",
    "EmbedLayerNormalization": "embed_layer_normalization",
    "ExpandDims": "earlier_ops",
    "FastGelu": "activations",
    "FusedConv": "convolutions",
    "FusedGemm": "products",
    "FusedMatMul": "products",
    "FusedMatMulActivation": "products",
    "GatedAdd": "activations",
    "GatedRMSNorm": "normalizations",
    "GatherBlockQuantized": "gather_block_quantized",
    "GatherND": "earlier_ops",
    "Gelu": "activations",
    "GemmFastGelu": "products",
    "GridSample": "earlier_ops",
    "GroupNorm": "normalizations",
    "GroupQueryAttention": "group_query_attention",
    "Inverse": "inverse",
    "LinearAttention": "linear_attention",
    "LinearAttentionGate": "linear_attention",
    "MRotaryEmbedding": "m_rotary_embedding",
    "MatMulBnb4": "mat_mul_bnb4",
    "MatMulInteger16": "products",
    "MatMulIntegerToFloat": "products",
    "MatMulNBits": "mat_mul_n_bits",
    "MoE": "mo_e",
    "MultiHeadAttention": "multi_head_attention",
    "NGramRepeatBlock": "n_gram_repeat_block",
    "NhwcConv": "convolutions",
    "NhwcFusedConv": "convolutions",
    "NhwcMaxPool": "convolutions",
    "Pad": "earlier_ops",
    "QAttention": "attention",
    "QEmbedLayerNormalization": "q_embed_layer_normalization",
    "QGemm": "q_linear",
    "QLinearAdd": "q_linear",
    "QLinearAveragePool": "q_linear",
    "QLinearConcat": "q_linear",
    "QLinearConv": "q_linear",
    "QLinearGlobalAveragePool": "q_linear",
    "QLinearLeakyRelu": "q_linear",
    "QLinearMul": "q_linear",
    "QLinearSigmoid": "q_linear",
    "QLinearSoftmax": "q_linear",
    "QLinearWhere": "q_linear",
    "QMoE": "q_mo_e",
    "QuantizeLinear": "earlier_ops",
    "QuickGelu": "activations",
    "Range": "earlier_ops",
    "RotaryEmbedding": "rotary_embedding",
    "ScaledSiLU": "activations",
    "SimplifiedLayerNormalization": "normalizations",
    "SkipGroupNorm": "normalizations",
    "SkipLayerNormalization": "normalizations",
    "SkipSimplifiedLayerNormalization": "normalizations",
    "SparseAttention": "sparse_attention",
    "Tokenizer": "tokenizer",
    "TransposeMatMul": "products",
    "Trilu": "earlier_ops",
    "UnfoldTensor": "earlier_ops",
    "Unique": "earlier_ops",
}
"""Op of com.microsoft -> its module."""

IN_ONNX_DOMAIN = ("SimplifiedLayerNormalization",)
"""The ops that ONNX Runtime writes into ONNX's own domain, where ONNX itself has no such op."""

_LOOP = "a whole loop of generation in one node: compile its decoder, and call it in a loop"
REFUSED = {
    "BeamSearch": _LOOP,
    "GreedySearch": _LOOP,
    "Sampling": _LOOP,
    "WhisperBeamSearch": _LOOP,
}
"""Ops that will have no translation, and why."""
