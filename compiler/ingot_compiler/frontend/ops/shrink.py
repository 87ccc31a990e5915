"""ONNX Shrink: x + bias below -lambd, x - bias above lambd, 0 between.

In: a tensor of numbers. Out: core elementwise ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_float, binary_scalar, cast, less_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    lambd, bias = context.float_attribute("lambd", 0.5), context.float_attribute("bias", 0.0)
    # Integers are compared and shifted as floats, as the attributes are.
    wide = as_float(context, x)
    dtype = context.dtype_of(wide)
    above = context.add("less", context.scalar(dtype, lambd), wide)
    lowered = binary_scalar(context, "sub", wide, bias)
    high = context.add("select", above, lowered, context.scalar(dtype, 0))
    low = binary_scalar(context, "add", wide, bias)
    result = context.add("select", less_scalar(context, wide, -lambd), low, high)
    return (cast(context, result, context.dtype_of(x)),)


OP = OnnxOp("Shrink", _translate)
