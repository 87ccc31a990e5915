"""The ops of ONNX Runtime's own domain, com.microsoft, that Ingot translates. One file per op and
one line here.

In: nothing. Out: ``FILES``, ``IN_ONNX_DOMAIN``, ``REFUSED``. Not done here: the table of all ops
(``op_table``). The op's file says what its nodes look like (``OnnxOp.signature``): the onnx package
has no schemas of this domain.
"""

FILES = {
    "Attention": "attention",
    "BiasAdd": "bias_add",
    "BiasGelu": "bias_gelu",
    "BiasSoftmax": "bias_softmax",
    "BiasSplitGelu": "bias_split_gelu",
    "CDist": "c_dist",
    "CausalConvWithState": "causal_conv_with_state",
    "ConvTransposeWithDynamicPads": "conv_transpose_with_dynamic_pads",
    "CropAndResize": "crop_and_resize",
    "DecoderMaskedMultiHeadAttention": "decoder_masked_multi_head_attention",
    "DequantizeLinear": "dequantize_linear",
    "DynamicQuantizeLSTM": "dynamic_quantize_lstm",
    "DynamicQuantizeMatMul": "dynamic_quantize_mat_mul",
    "EmbedLayerNormalization": "embed_layer_normalization",
    "ExpandDims": "expand_dims",
    "FastGelu": "fast_gelu",
    "FusedConv": "fused_conv",
    "FusedGemm": "fused_gemm",
    "FusedMatMul": "fused_mat_mul",
    "FusedMatMulActivation": "fused_mat_mul_activation",
    "GatedAdd": "gated_add",
    "GatedRMSNorm": "gated_rms_norm",
    "GatherBlockQuantized": "gather_block_quantized",
    "GatherND": "gather_nd",
    "Gelu": "gelu",
    "GemmFastGelu": "gemm_fast_gelu",
    "GridSample": "grid_sample",
    "GroupNorm": "group_norm",
    "GroupQueryAttention": "group_query_attention",
    "Inverse": "inverse",
    "LinearAttention": "linear_attention",
    "LinearAttentionGate": "linear_attention_gate",
    "MRotaryEmbedding": "m_rotary_embedding",
    "MatMulBnb4": "mat_mul_bnb4",
    "MatMulInteger16": "mat_mul_integer16",
    "MatMulIntegerToFloat": "mat_mul_integer_to_float",
    "MatMulNBits": "mat_mul_n_bits",
    "MoE": "mo_e",
    "MultiHeadAttention": "multi_head_attention",
    "NGramRepeatBlock": "n_gram_repeat_block",
    "NhwcConv": "nhwc_conv",
    "NhwcFusedConv": "nhwc_fused_conv",
    "NhwcMaxPool": "nhwc_max_pool",
    "Pad": "pad",
    "QAttention": "q_attention",
    "QEmbedLayerNormalization": "q_embed_layer_normalization",
    "QGemm": "q_gemm",
    "QLinearAdd": "q_linear_add",
    "QLinearAveragePool": "q_linear_average_pool",
    "QLinearConcat": "q_linear_concat",
    "QLinearConv": "q_linear_conv",
    "QLinearGlobalAveragePool": "q_linear_global_average_pool",
    "QLinearLeakyRelu": "q_linear_leaky_relu",
    "QLinearMul": "q_linear_mul",
    "QLinearSigmoid": "q_linear_sigmoid",
    "QLinearSoftmax": "q_linear_softmax",
    "QLinearWhere": "q_linear_where",
    "QMoE": "q_mo_e",
    "QuantizeLinear": "quantize_linear",
    "QuickGelu": "quick_gelu",
    "Range": "range",
    "RotaryEmbedding": "rotary_embedding",
    "ScaledSiLU": "scaled_si_lu",
    "SimplifiedLayerNormalization": "simplified_layer_normalization",
    "SkipGroupNorm": "skip_group_norm",
    "SkipLayerNormalization": "skip_layer_normalization",
    "SkipSimplifiedLayerNormalization": "skip_simplified_layer_normalization",
    "SparseAttention": "sparse_attention",
    "Tokenizer": "tokenizer",
    "TransposeMatMul": "transpose_mat_mul",
    "Trilu": "trilu",
    "UnfoldTensor": "unfold_tensor",
    "Unique": "unique",
}
"""Op of com.microsoft -> its file."""

IN_ONNX_DOMAIN = ("SimplifiedLayerNormalization",)
"""Those that ONNX Runtime writes into ONNX's own domain, where ONNX itself has no such op."""

_LOOP = "a whole loop of generation in one node: compile its decoder, and call it in a loop"
REFUSED = {
    "BeamSearch": _LOOP,
    "GreedySearch": _LOOP,
    "Sampling": _LOOP,
    "WhisperBeamSearch": _LOOP,
}
"""Ops that will have no translation, and why."""
