"""ONNX Gemm: alpha * A' B' + beta * C.

In: two matrices, perhaps C that broadcasts. Out: core ``transpose``, ``matmul``, ``mul``, ``add``.
Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import scaled, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.block_weights import block_product, note_transposed
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    a, b, c = context.operand(0), context.operand(1), context.optional(2)
    for matrix in (a, b):
        if context.rank_of(matrix) != 2:
            raise OpTypeError("matrices", context.type_of(matrix))
    a = transpose(context, a, (1, 0)) if context.int_attribute("transA", 0) else a
    if context.int_attribute("transB", 0):
        turned = transpose(context, b, (1, 0))
        note_transposed(context, b, turned)
        b = turned
    product = block_product(context, a, b)
    if product is None:
        product = context.add("matmul", a, b)
    result = scaled(context, product, context.float_attribute("alpha", 1.0))
    if c is None:
        return (result,)
    own, other = context.shape_of(result), context.shape_of(c)
    sizes = zip(reversed(own), reversed(other), strict=False)
    if len(other) > 2 or any(
        isinstance(d, int) and d != 1 and isinstance(o, int) and d != o for o, d in sizes
    ):
        raise OpTypeError(message("C that broadcasts to ", list(own)), context.type_of(c))
    beta = context.float_attribute("beta", 1.0)
    if beta == 0.0:  # C is not read then, whatever it holds
        return (result,)
    return (context.add("add", result, scaled(context, c, beta)),)


OPS = (OnnxOp("Gemm", _translate, since=7),)
