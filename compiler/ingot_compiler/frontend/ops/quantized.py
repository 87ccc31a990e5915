"""ONNX's ops that quantize, and products of quantized tensors.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ingot_compiler.frontend.build.compose import cast, reduce, reshape, unsqueeze
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.translation import BlockWeights
from ingot_compiler.frontend.families.weights.block_weights import note_block_weights
from ingot_compiler.frontend.families.weights.low_bits import FORMATS, convert
from ingot_compiler.frontend.families.weights.quantization import LIMITS, along, centred, rounded
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.frontend.ops.conv import CONV
from ingot_compiler.ir.types import DType


def convolution(
    context: OpContext,
    x: int,
    x_zero: int | None,
    w: int,
    w_zero: int | None,
    bias: int | None = None,
) -> int:
    """i32 convolution. Sums of products of 8-bit integers are exact in f64."""
    x_offset = None if x_zero is None else along(context, x_zero, x, 1)
    w_offset = None if w_zero is None else along(context, w_zero, w, 0)
    operands = [centred(context, x, x_offset, "f64"), centred(context, w, w_offset, "f64")]
    operands += [] if bias is None else [cast(context, bias, "f64")]
    (result,) = CONV.translate(replace(context, operands=tuple(operands)))
    return cast(context, result, "i32")


def _conv_integer(context: OpContext) -> Sequence[int]:
    """Convolution of 8-bit integers less their zero points.

    In: x, w, perhaps zero points. Out: i32.
    """
    x, w = context.operand(0), context.operand(1)
    return (convolution(context, x, context.optional(2), w, context.optional(3)),)


def _dequantize_linear(context: OpContext) -> Sequence[int]:
    """(x - zero point) * scale.

    In: a tensor of integers or low-bit floats, scales, perhaps zero points. Out: a float tensor.
    """
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
        context.translation.dequantized.add(result)
    return (result,)


DEQUANTIZE_LINEAR = OnnxOp("DequantizeLinear", _dequantize_linear)


def _dynamic_quantize_linear(context: OpContext) -> Sequence[int]:
    """Quantize to u8 by the tensor's own range.

    In: a float tensor. Out: u8 tensor, scale, zero point.
    """
    x = context.operand(0)
    zero = context.scalar(context.dtype_of(x), 0)
    low, high = _extreme(context, x, zero, "min"), _extreme(context, x, zero, "max")
    span = context.add("sub", high, low)
    scale = context.add("div", span, context.scalar(context.dtype_of(x), 255))
    # A tensor of zeros: any divisor is right, and 0 / 0 is not.
    one = context.scalar(context.dtype_of(x), 1)
    divisor = context.add("select", context.add("equal", span, zero), one, scale)
    point = rounded(context, context.add("div", context.add("neg", low), divisor), None, "u8")
    return rounded(context, context.add("div", x, divisor), point, "u8"), scale, point


def _extreme(context: OpContext, x: int, zero: int, function: Literal["min", "max"]) -> int:
    """The least or greatest of all elements and 0."""
    found = reduce(context, x, function, range(context.rank_of(x)))
    return context.add(function, found, zero)


DYNAMIC_QUANTIZE_LINEAR = OnnxOp("DynamicQuantizeLinear", _dynamic_quantize_linear)


def product(context: OpContext, a: int, a_zero: int | None, b: int, b_zero: int | None) -> int:
    """i32 product of a - a_zero (per row) and b - b_zero (per column): nine bits, exact in i16."""
    rank_a, rank_b = context.rank_of(a), context.rank_of(b)
    if a_zero is not None and context.rank_of(a_zero) == 1 and rank_a > 1:
        a_zero = along(context, a_zero, a, rank_a - 2)
    if b_zero is not None and context.rank_of(b_zero) == 1 and rank_b > 1:
        b_zero = along(context, b_zero, b, rank_b - 1)
    left, right = centred(context, a, a_zero, "i16"), centred(context, b, b_zero, "i16")
    if rank_a > 1 and rank_b > 1:
        return context.add("matmul_integer", left, right)
    left = unsqueeze(context, left, (0,)) if rank_a == 1 else left
    right = unsqueeze(context, right, (1,)) if rank_b == 1 else right
    result = context.add("matmul_integer", left, right)
    *batch, rows, columns = context.shape_of(result)
    shape = (*batch, *([] if rank_a == 1 else [rows]), *([] if rank_b == 1 else [columns]))
    return context.add("reshape", result, shape=shape)


def _mat_mul_integer(context: OpContext) -> Sequence[int]:
    """Product of 8-bit integers less their zero points.

    In: a, b, perhaps zero points. Out: i32.
    """
    a, b = context.operand(0), context.operand(1)
    return (product(context, a, context.optional(2), b, context.optional(3)),)


def _q_linear_conv(context: OpContext) -> Sequence[int]:
    """Convolution of quantized tensors, quantized again.

    In: x, w, scales, zero points, perhaps bias. Out: an 8-bit tensor.
    """
    x, w, zero = context.operand(0), context.operand(3), context.operand(7)
    total = convolution(context, x, context.operand(2), w, context.operand(5), context.optional(8))
    scales = [
        along(context, cast(context, context.operand(position), "f32"), total, 1)
        for position in (1, 4, 6)
    ]
    factor = context.add("div", context.add("mul", scales[0], scales[1]), scales[2])
    scaled = context.add("mul", cast(context, total, "f32"), factor)
    return (rounded(context, scaled, along(context, zero, total, 1), context.dtype_of(zero)),)


def _scale(context: OpContext, value: int, x: int, axis: int) -> int:
    wide = cast(context, value, "f32")
    if context.rank_of(wide) > 1:
        return wide
    return along(context, wide, x, axis) if context.rank_of(x) > 1 else reshape(context, wide, ())


def _q_linear_mat_mul(context: OpContext) -> Sequence[int]:
    """Product of quantized matrices, quantized again.

    In: a, b, scales, zero points. Out: an 8-bit tensor.
    """
    a, b = context.operand(0), context.operand(3)
    total = product(context, a, context.operand(2), b, context.operand(5))
    rank = context.rank_of(total)
    scales = [
        _scale(context, context.operand(1), total, rank - 2 if rank > 1 else 0),
        _scale(context, context.operand(4), total, rank - 1 if rank else 0),
        _scale(context, context.operand(6), total, rank - 1 if rank else 0),
    ]
    factor = context.add("div", context.add("mul", scales[0], scales[1]), scales[2])
    scaled = context.add("mul", cast(context, total, "f32"), factor)
    zero = context.operand(7)
    offset = (
        zero if context.rank_of(zero) != 1 else along(context, zero, total, rank - 1 if rank else 0)
    )
    dtype = context.dtype_of(zero)
    return (rounded(context, scaled, offset, dtype),)


def _quantize_linear(context: OpContext) -> Sequence[int]:
    """round(x / scale) + zero point, saturated.

    In: a float tensor, scales, perhaps zero points. Out: a tensor of integers of at most 16 bits,
    or of floats of at most 8.
    """
    x, scale, zero = context.operand(0), context.operand(1), context.optional(2)
    number = context.int_attribute("output_dtype", 0)
    dtype = context.dtype_of(zero) if zero is not None else dtype_of(number) if number else "u8"
    if dtype is None or (dtype not in LIMITS and dtype not in FORMATS):
        raise Unsupported(f"results of {onnx_dtype_name(number) if number else dtype}")
    precision = dtype_of(context.int_attribute("precision", 0)) or context.dtype_of(scale)
    rank = context.rank_of(x)
    axis = context.axis_attribute(1, rank) if rank > 1 else 0
    block = context.int_attribute("block_size", 0)
    divisor = convert(context, along(context, scale, x, axis, block), precision)
    quotient = context.add("div", cast(context, x, precision), divisor)
    wide = cast(context, quotient, "f32") if precision in ("f16", "bf16") else quotient
    offset = None if zero is None else along(context, zero, x, axis, block)
    saturate = bool(context.int_attribute("saturate", 1))
    return (rounded(context, wide, offset, dtype, saturate=saturate),)


QUANTIZE_LINEAR = OnnxOp("QuantizeLinear", _quantize_linear)


OPS = (
    OnnxOp("ConvInteger", _conv_integer),
    DEQUANTIZE_LINEAR,
    DYNAMIC_QUANTIZE_LINEAR,
    OnnxOp("MatMulInteger", _mat_mul_integer),
    OnnxOp("QLinearConv", _q_linear_conv),
    OnnxOp("QLinearMatMul", _q_linear_mat_mul),
    QUANTIZE_LINEAR,
)
