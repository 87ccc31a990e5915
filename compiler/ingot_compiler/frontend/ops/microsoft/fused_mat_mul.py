"""ONNX Runtime FusedMatMul: alpha times the product of two tensors, each perhaps transposed.

In: two tensors, vectors or more. Out: what ONNX's MatMul becomes, core ``transpose``, ``mul``. Not
done here: types.

``transBatchA`` says that the rows of A are its first axis, before those of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import scaled, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.mat_mul import product


def fused_product(context: OpContext) -> int:
    """Alpha * A' B' of the node's operands and attributes."""
    a = _turned(context, context.operand(0), "A")
    b = _turned(context, context.operand(1), "B")
    return scaled(context, product(context, a, b), context.float_attribute("alpha", 1.0))


def _turned(context: OpContext, x: int, name: str) -> int:
    """An operand with its batch in front and its rows and columns as the product takes them."""
    rank = context.rank_of(x)
    order = list(range(rank))
    if rank > 2 and context.bool_attribute(f"transBatch{name}"):
        order = [*order[1:-1], order[0], order[-1]]
    if rank > 1 and context.bool_attribute(f"trans{name}"):
        order = [*order[:-2], order[-1], order[-2]]
    return transpose(context, x, order)


def _translate(context: OpContext) -> Sequence[int]:
    return (fused_product(context),)


OP = OnnxOp(
    "FusedMatMul",
    _translate,
    signature="A B -> Y; alpha:float transA:int transB:int transBatchA:int transBatchB:int",
)
