"""ONNX SpaceToDepth: blocks of rows and columns become blocks of channels (modes DCR and CRD since
opset 28).

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
    if (
        len(shape) != 4
        or block < 1
        or any(isinstance(size, int) and size % block for size in shape[2:])
    ):
        raise OpTypeError(f"x[N, C, H, W] with {block} dividing H and W", context.type_of(x))
    batch, channels = shape[:2]
    height, width = (dim_floordiv(size, block) for size in shape[2:])
    split = reshape(context, x, (batch, channels, height, block, width, block))
    moved = transpose(context, split, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return (reshape(context, moved, (batch, dim_mul(channels, block * block), height, width)),)


OP = OnnxOp("SpaceToDepth", _translate)
