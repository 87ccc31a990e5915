"""ONNX DepthToSpace: blocks of channels become blocks of rows and columns (modes DCR and CRD).

In: x[N, C, H, W]. Out: core ``reshape``, ``transpose``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, block = context.operand(0), context.int_attribute("blocksize", 1)
    mode = context.string_attribute("mode", "DCR", ("DCR", "CRD"))
    shape = context.shape_of(x)
    if len(shape) != 4 or block < 1 or (isinstance(shape[1], int) and shape[1] % (block * block)):
        raise OpTypeError(f"x[N, C, H, W] with {block * block} dividing C", context.type_of(x))
    batch, channels, height, width = shape
    depth = dim_floordiv(channels, block * block)
    split = (block, block, depth) if mode == "DCR" else (depth, block, block)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    moved = transpose(context, reshape(context, x, (batch, *split, height, width)), order)
    return (reshape(context, moved, (batch, depth, dim_mul(height, block), dim_mul(width, block))),)


OP = OnnxOp("DepthToSpace", _translate)
