"""ONNX Runtime GatherBlockQuantized: rows of a table of a few bits, dequantized behind the lookup.

In: data of u4, i4 or u8 (several numbers in a byte along the last axis where ``bits`` is 4),
indices, scales, perhaps zero points. Out: core ``gather`` of each, dequantized. Not done here:
types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.block_weights import as_codes, packed
from ingot_compiler.frontend.families.weights.low_bits import convert
from ingot_compiler.frontend.families.weights.nibbles import spread
from ingot_compiler.frontend.families.weights.quantization import along
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType


def _translate(context: OpContext) -> Sequence[int]:
    data, indices, scale = (context.operand(number) for number in range(3))
    rank, block = context.rank_of(data), context.int_attribute("block_size", 128)
    axis = _axis(context, "quantize_axis", 1, rank)
    gathered = _axis(context, "gather_axis", 0, rank)
    if gathered != 0 or axis != rank - 1:
        raise Unsupported("gather_axis other than the first, quantize_axis other than the last")
    if block < 16 or block & (block - 1):
        raise OpTypeError("block_size to be a power of 2, at least 16", block)
    bits = context.int_attribute("bits", 4)
    numbers = _rows(context, data, indices, bits)
    factor = cast(context, context.add("gather", scale, indices, axis=0), "f32")
    last = context.rank_of(numbers) - 1
    zero = context.optional(3)
    wide = convert(context, numbers, "f32")
    if zero is not None:
        points = convert(context, _rows(context, zero, indices, bits), "f32")
        wide = context.add("sub", wide, along(context, points, wide, last, block))
    elif context.dtype_of(numbers) == "u8":
        wide = context.add("sub", wide, context.scalar("f32", 1 << (bits - 1)))
    product = context.add("mul", wide, along(context, factor, wide, last, block))
    return (cast(context, product, context.dtype_of(scale)),)


def _axis(context: OpContext, name: str, default: int, rank: int) -> int:
    axis = context.int_attribute(name, default)
    return axis + rank if axis < 0 else axis


def _rows(context: OpContext, table: int, indices: int, bits: int) -> int:
    """Rows of a table that is read as bytes: its numbers stay packed in the bundle."""
    dtype = context.dtype_of(table)
    if dtype == "u8":
        return spread(context, context.add("gather", table, indices, axis=0), bits)
    last = context.shape_of(table)[-1]
    if not isinstance(last, int) or last % 2:
        return context.add("gather", table, indices, axis=0)
    bytes_ = packed(context, as_codes(context, table))
    rows = spread(context, context.add("gather", bytes_, indices, axis=0), 4)
    found: DType = dtype
    return context.add("bit_cast", rows, dtype=found)


OPS = (
    OnnxOp(
        "GatherBlockQuantized",
        _translate,
        signature="data indices scales zero_points? -> output; "
        "bits:int block_size:int gather_axis:int quantize_axis:int",
    ),
)
