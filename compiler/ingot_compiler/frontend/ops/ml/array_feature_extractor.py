"""ai.onnx.ml ArrayFeatureExtractor: columns of the last axis, picked by indices.

In: x[.., n], i64 indices. Out: x[.., indices]; of a vector, one row. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_vector, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    x, indices = context.operand(0), as_vector(context, context.operand(1))
    rank = context.rank_of(x)
    require(rank >= 1, "x[.., n]", context.type_of(x))
    indices = checked_indices(context, indices, context.shape_of(x)[-1])
    picked = context.add("gather", x, indices, axis=rank - 1)
    return (unsqueeze(context, picked, (0,)) if rank == 1 else picked,)


OP = OnnxOp("ArrayFeatureExtractor", _translate)
