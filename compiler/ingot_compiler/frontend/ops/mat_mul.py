"""ONNX MatMul: matrix products as numpy has them; vectors on either side.

In: two tensors. Out: core ``matmul``, or ``matmul_blocks``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.block_weights import block_product
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def product(context: OpContext, a: int, b: int) -> int:
    """The matrix product of two tensors as numpy has it."""
    rank_a, rank_b = context.rank_of(a), context.rank_of(b)
    if not rank_a or not rank_b:
        raise OpTypeError("rank >= 1", message(context.type_of(a), " and ", context.type_of(b)))
    left = unsqueeze(context, a, (0,)) if rank_a == 1 else a
    right = unsqueeze(context, b, (1,)) if rank_b == 1 else b
    result = block_product(context, left, right)
    if result is None:
        result = context.add("matmul", left, right)
    shape = list(context.shape_of(result))
    if rank_b == 1:
        del shape[-1]
    if rank_a == 1:
        del shape[-1 if rank_b == 1 else -2]
    return reshape(context, result, shape)


def _translate(context: OpContext) -> Sequence[int]:
    return (product(context, context.operand(0), context.operand(1)),)


OPS = (OnnxOp("MatMul", _translate),)
