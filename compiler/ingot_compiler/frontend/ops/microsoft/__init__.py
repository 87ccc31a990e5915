"""The ops of ONNX Runtime's own domain, com.microsoft, that Ingot translates. One file per op and
one line here.

In: nothing. Out: ``FILES``, ``IN_ONNX_DOMAIN``. Not done here: the table of all ops
(``op_table``). The op's file says what its nodes look like (``OnnxOp.signature``): the onnx package
has no schemas of this domain.
"""

FILES = {
    "DequantizeLinear": "dequantize_linear",
    "DynamicQuantizeMatMul": "dynamic_quantize_mat_mul",
    "FusedMatMul": "fused_mat_mul",
    "MatMulIntegerToFloat": "mat_mul_integer_to_float",
    "QGemm": "q_gemm",
    "QLinearAdd": "q_linear_add",
    "QLinearAveragePool": "q_linear_average_pool",
    "QLinearConcat": "q_linear_concat",
    "QLinearGlobalAveragePool": "q_linear_global_average_pool",
    "QLinearLeakyRelu": "q_linear_leaky_relu",
    "QLinearMul": "q_linear_mul",
    "QLinearSigmoid": "q_linear_sigmoid",
    "QLinearSoftmax": "q_linear_softmax",
    "QLinearWhere": "q_linear_where",
    "QuantizeLinear": "quantize_linear",
}
"""Op of com.microsoft -> its file."""

IN_ONNX_DOMAIN: tuple[str, ...] = ()
"""Those that ONNX Runtime writes into ONNX's own domain, where ONNX itself has no such op."""
