"""ONNX Transpose: axes in another order, reversed when ``perm`` is absent.

In: a tensor. Out: core ``transpose``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.block_weights import note_transposed
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = context.rank_of(x)
    permutation = context.ints_or("perm", range(rank)[::-1])
    assert permutation is not None
    # The standard has no negative axes here; an exporter writes them all the same, and they mean
    # one thing only.
    axes = tuple(axis + rank if axis < 0 else axis for axis in permutation)
    if sorted(axes) != list(range(rank)):
        raise OpTypeError(f"a permutation of {rank} axes", list(permutation))
    result = transpose(context, x, axes)
    note_transposed(context, x, result)
    return (result,)


OP = OnnxOp("Transpose", _translate)
