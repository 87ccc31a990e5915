"""ONNX Runtime CDist: distances between the rows of two matrices.

In: A[M, N], B[K, N]. Out: [M, K] from core ``sub``, ``mul``, ``reduce``, ``sqrt``. Not done here:
the many metrics that ONNX Runtime names and has not.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reduce, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    a, b = context.operand(0), context.operand(1)
    if context.rank_of(a) != 2 or context.rank_of(b) != 2:
        raise OpTypeError("matrices", context.type_of(a))
    allowed = ("euclidean", "sqeuclidean")
    metric = context.string_attribute("metric", "sqeuclidean", allowed)
    apart = context.add("sub", unsqueeze(context, a, (1,)), unsqueeze(context, b, (0,)))
    squares = reduce(context, context.add("mul", apart, apart), "sum", (2,))
    return (context.add("sqrt", squares) if metric == "euclidean" else squares,)


OP = OnnxOp("CDist", _translate, signature="A B -> C; metric:string")
