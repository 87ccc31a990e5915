"""ONNX DequantizeLinear: (x - zero point) * scale.

In: a tensor of integers or low-bit floats, scales, perhaps zero points. Out: a float tensor. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.translation import BlockWeights
from ingot_compiler.frontend.families.weights.block_weights import note_block_weights
from ingot_compiler.frontend.families.weights.low_bits import convert
from ingot_compiler.frontend.families.weights.quantization import along, centred
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.ir.types import DType


def _translate(context: OpContext) -> Sequence[int]:
    x, scale, zero = context.operand(0), context.operand(1), context.optional(2)
    number = context.int_attribute("output_dtype", 0)
    dtype = dtype_of(number) if number else context.dtype_of(scale)
    if dtype is None:
        raise Unsupported(f"results of {onnx_dtype_name(number)}")
    rank = context.rank_of(x)
    axis = context.axis_attribute(1, rank) if rank > 1 else 0
    block = context.int_attribute("block_size", 0)
    offset = None if zero is None else along(context, zero, x, axis, block)
    # Differences of 32-bit integers are exact before they are rounded.
    wide: DType = "i64" if context.dtype_of(x) in ("i32", "u32") and offset is not None else "f32"
    factor = convert(context, along(context, scale, x, axis, block), "f32")
    difference = cast(context, centred(context, x, offset, wide), "f32")
    result = cast(context, context.add("mul", difference, factor), dtype)
    note_block_weights(context, result, BlockWeights(x, scale, zero, axis, block))
    if context.dtype_of(x) in ("i8", "u8"):
        context.translation.dequantised.add(result)
    return (result,)


OP = OnnxOp("DequantizeLinear", _translate)
