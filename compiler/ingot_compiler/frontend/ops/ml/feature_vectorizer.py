"""ai.onnx.ml FeatureVectorizer: features of several tensors beside each other.

In: tensors [N, n] or [N]. Out: f32 [N, sum of the sizes]: each tensor cut, or filled with zeros, to
the size that ``inputdimensions`` says. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, concat, slice_axis, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import numbers_of
from ingot_compiler.ir.dims import dim_add, dim_mul
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.sizes.ranges import minimum


def _translate(context: OpContext) -> Sequence[int]:
    operands = context.given()
    sizes = numbers_of(context, "inputdimensions")
    if sizes:
        require(len(sizes) == len(operands), f"{len(operands)} inputdimensions", len(sizes))
    parts = [_columns(context, operand) for operand in operands]
    if sizes:
        parts = [_sized(context, x, size) for x, size in zip(parts, sizes, strict=True)]
    return (concat(context, parts, 1),)


def _columns(context: OpContext, x: int) -> int:
    rank = context.rank_of(x)
    require(rank in (1, 2), "tensors [N, n] or [N]", context.type_of(x))
    return cast(context, unsqueeze(context, x, (1,)) if rank == 1 else x, "f32")


def _sized(context: OpContext, x: int, size: int) -> int:
    kept = slice_axis(context, x, 1, 0, minimum(context.shape_of(x)[1], size))
    lacking = dim_add(size, dim_mul(context.shape_of(kept)[1], -1))
    if lacking == 0:
        return kept
    zero = context.scalar("f32", 0.0)
    return context.add("pad", kept, zero, before=(0, 0), after=(0, lacking), mode="constant")


OP = OnnxOp("FeatureVectorizer", _translate)
