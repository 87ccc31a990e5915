"""ONNX RMSNormalization: x / sqrt(mean of x^2 + epsilon) over the last axes, scaled.

In: x, scale. Out: core ``rms_norm``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, full
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, scale = context.operand(0), context.operand(1)
    axis = context.axis_attribute(-1, context.rank_of(x))
    epsilon, tail = context.float_attribute("epsilon", 1e-5), context.shape_of(x)[axis:]
    if len(context.shape_of(scale)) > len(tail):
        ones = full(context, context.dtype_of(x), 1, tail)
        return (
            context.add("mul", context.add("rms_norm", x, ones, axis=axis, epsilon=epsilon), scale),
        )
    return (
        context.add("rms_norm", x, broadcast_to(context, scale, tail), axis=axis, epsilon=epsilon),
    )


OP = OnnxOp("RMSNormalization", _translate)
