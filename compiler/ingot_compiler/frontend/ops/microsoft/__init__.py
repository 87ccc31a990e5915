"""The ops of ONNX Runtime's own domain, com.microsoft, that Ingot translates. One file per op and
one line here.

In: nothing. Out: ``FILES``, ``IN_ONNX_DOMAIN``. Not done here: the table of all ops
(``op_table``). The op's file says what its nodes look like (``OnnxOp.signature``): the onnx package
has no schemas of this domain.
"""

FILES = {
    "FusedMatMul": "fused_mat_mul",
    "GatherBlockQuantized": "gather_block_quantized",
    "MatMulNBits": "mat_mul_n_bits",
}
"""Op of com.microsoft -> its file."""

IN_ONNX_DOMAIN: tuple[str, ...] = ()
"""Those that ONNX Runtime writes into ONNX's own domain, where ONNX itself has no such op."""
