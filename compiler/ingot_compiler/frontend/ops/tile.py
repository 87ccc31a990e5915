"""ONNX Tile: the tensor repeated along each axis.

In: a tensor and repeats that are known or computed at run time. Out: core ``reshape``,
``broadcast_to``. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import with_count
from ingot_compiler.ir.dims import dim_mul


def _translate(context: OpContext) -> Sequence[int]:
    x, shape = context.operand(0), context.shape_of(context.operand(0))
    repeats = context.read_dims(with_count(context, context.operand(1), len(shape), "repeats"))
    pairs = list(zip(repeats, shape, strict=True))
    split = reshape(
        context,
        x,
        [dim for repeat, size in pairs for dim in ((1, size) if repeat != 1 else (size,))],
    )
    wide = broadcast_to(
        context,
        split,
        [dim for repeat, size in pairs for dim in ((repeat, size) if repeat != 1 else (size,))],
    )
    return (reshape(context, wide, [dim_mul(repeat, size) for repeat, size in pairs]),)


OP = OnnxOp("Tile", _translate, since=6)
