"""ONNX Runtime MatMulBnb4: a product with weights of 4 bits that stand for numbers of a table.

In: A, bytes of the codes of B[N, K] in its order, the upper half of a byte first, the largest
number of each block. Out: ``matmul`` by the dequantized weights. Not done here: a kernel of its own
for these codes; the constants are dequantized when compiling.

The codes are those of bitsandbytes: FP4 (sign, exponent, mantissa of 1, 2 and 1 bits) and NF4
(quantiles of the normal distribution).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    reshape,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from, with_size
from ingot_compiler.ir.op_type_error import require

_FP4_POSITIVE = (0.0, 0.005208333333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
_NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
_TABLES = ((*_FP4_POSITIVE, *(-number for number in _FP4_POSITIVE)), _NF4)


def _translate(context: OpContext) -> Sequence[int]:
    depth, columns = context.int_attribute("K", 0), context.int_attribute("N", 0)
    require(depth > 0 and columns > 0, "sizes K and N above 0", f"{depth} and {columns}")
    is_turned = context.bool_attribute("transB", default=True)
    a = context.operand(0)
    sizes_from(context, a, 1)
    own = depth if is_turned else columns
    a = with_size(context, a, -1, own, f"A of depth {own}")
    weights = cast(context, _weights(context, columns, depth), context.dtype_of(a))
    if is_turned:
        weights = transpose(context, weights, (1, 0))
    return (as_onnx(context, "MatMul", a, weights),)


def _weights(context: OpContext, columns: int, depth: int) -> int:
    """f32 [N, K]."""
    count, block = columns * depth, context.int_attribute("block_size", 0)
    kind = context.int_attribute("quant_type", 0)
    require(block > 1 and block % 2 == 0, "an even block_size", str(block))
    require(kind in (0, 1), "quant_type 0 or 1", str(kind))
    table = context.float_vector("f32", _TABLES[kind])
    numbers = as_onnx(context, "Gather", table, _codes(context, -(-count // 2)))
    blocks = -(-count // block)
    scales = with_size(context, context.operand(2), 0, blocks, f"absmax of {blocks} blocks")
    wide = broadcast_to(context, reshape(context, scales, (blocks, 1)), (blocks, block))
    each = slice_axis(context, reshape(context, wide, (blocks * block,)), 0, 0, count)
    numbers = slice_axis(context, numbers, 0, 0, count)
    product = context.add("mul", numbers, cast(context, each, "f32"))
    return reshape(context, product, (columns, depth))


def _codes(context: OpContext, count: int) -> int:
    """i64 [2 * count]: the halves of bytes, the upper one first."""
    data = with_size(context, context.operand(1), 0, count, f"B of {count} bytes")
    upper = binary_scalar(context, "shift_right", data, 4)
    lower = binary_scalar(context, "bitwise_and", data, 15)
    pairs = concat(context, [reshape(context, half, (count, 1)) for half in (upper, lower)], 1)
    return cast(context, reshape(context, pairs, (2 * count,)), "i64")


OPS = (
    OnnxOp(
        "MatMulBnb4",
        _translate,
        signature="A B absmax -> Y; K!:int N!:int block_size!:int quant_type!:int training_mode:int "
        "transB:int",
    ),
)
