"""ONNX BatchNormalization in inference: given statistics per channel.

In: x[N, C, ..], scale, bias, mean, variance [C]. Out: core ``batch_norm``. Not done here: training
mode (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import cast, in_dtype, widest
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    if context.int_attribute("training_mode", 0):
        raise Unsupported("training mode")
    if not context.int_attribute("spatial", 1):
        raise Unsupported("statistics per element (spatial = 0)")
    values, dtype = context.given(), context.dtype_of(context.operand(0))
    if len(context.shape_of(values[0])) < 2:
        raise OpTypeError("x[N, C, ..] of rank >= 2", context.type_of(values[0]))
    wide = in_dtype(context, values, widest([context.dtype_of(value) for value in values]))
    return (
        cast(
            context,
            context.add("batch_norm", *wide, epsilon=context.float_attribute("epsilon", 1e-5)),
            dtype,
        ),
    )


OP = OnnxOp("BatchNormalization", _translate, since=7)
