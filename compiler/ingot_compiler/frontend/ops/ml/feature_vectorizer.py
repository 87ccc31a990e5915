"""ai.onnx.ml FeatureVectorizer: features of several tensors beside each other.

In: tensors [N, n] or [N]. Out: f32 [N, sum of the sizes]: each tensor cut, or filled with zeros, to
the size that ``inputdimensions`` says. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import cast, concat, slice_axis, unsqueeze
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.ml_scores import numbers_of
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import require


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
    own = context.shape_of(x)[1]
    if not isinstance(own, int):
        raise Unsupported("a number of features that is known at run time only")
    if own >= size:
        return slice_axis(context, x, 1, 0, size)
    zero = context.scalar("f32", 0.0)
    after = (0, size - own)
    return context.add("pad", x, zero, before=(0, 0), after=after, mode="constant")


OP = OnnxOp("FeatureVectorizer", _translate)
