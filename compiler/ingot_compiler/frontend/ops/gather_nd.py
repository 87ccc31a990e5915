"""ONNX GatherND: slices picked by index vectors.

In: a tensor and integer index vectors. Out: core ``gather_nd``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_vectors
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, indices = context.operand(0), context.operand(1)
    batch_dims = context.int_attribute("batch_dims", 0)
    picked = checked_vectors(context, indices, context.shape_of(x)[max(batch_dims, 0) :])
    return (context.add("gather_nd", x, picked, batch_dims=batch_dims),)


OP = OnnxOp("GatherND", _translate)
