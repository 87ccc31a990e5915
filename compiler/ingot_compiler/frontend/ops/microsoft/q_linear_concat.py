"""ONNX Runtime QLinearConcat: quantised tensors one after the other, quantised.

In: scale and zero point of the result; operands, each with scale and zero point. Out: 8-bit
integers. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import concat
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised
from ingot_compiler.ir.op_type_error import OpTypeError

_FIRST = 2


def _translate(context: OpContext) -> Sequence[int]:
    count, rest = divmod(len(context.operands) - _FIRST, 3)
    if rest or not count:
        raise OpTypeError("three operands for each tensor", len(context.operands) - _FIRST)
    parts = [dequantised(context, _FIRST + 3 * index) for index in range(count)]
    if context.rank_of(parts[0]) == 0:
        raise OpTypeError("operands of rank >= 1", context.type_of(parts[0]))
    axis = context.axis_attribute(0, context.rank_of(parts[0]))
    return (quantised(context, concat(context, parts, axis), 0),)


OP = OnnxOp(
    "QLinearConcat",
    _translate,
    signature="Y_scale Y_zero_point inputs* -> Y; axis!:int",
)
