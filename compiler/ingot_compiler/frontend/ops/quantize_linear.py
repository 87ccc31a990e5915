"""ONNX QuantizeLinear: round(x / scale) + zero point, saturated.

In: a float tensor, scales, perhaps zero points. Out: a tensor of integers of at most 16 bits, or
of floats of at most 8. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.low_bits import FORMATS, convert
from ingot_compiler.frontend.families.weights.quantization import LIMITS, along, rounded
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name


def _translate(context: OpContext) -> Sequence[int]:
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


OP = OnnxOp("QuantizeLinear", _translate)
