"""ONNX Runtime QLinearGlobalAveragePool: mean of a quantised image per channel, quantised.

In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.compose import transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import dequantised, quantised
from ingot_compiler.frontend.ops.global_average_pool import OP as GLOBAL_AVERAGE_POOL
from ingot_compiler.ir.op_type_error import OpTypeError


def pooled(context: OpContext, pool: Callable[[int], int]) -> int:
    """A pool of the image, whose channels may come last."""
    if not context.bool_attribute("channels_last"):
        return quantised(context, pool(dequantised(context, 0)), 3)
    rank = context.rank_of(context.operand(0))
    if rank < 3:
        raise OpTypeError("rank >= 3", context.type_of(context.operand(0)))
    image = transpose(context, dequantised(context, 0), (0, rank - 1, *range(1, rank - 1)))
    result = transpose(context, pool(image), (0, *range(2, rank), 1))
    return quantised(context, result, 3)


def _translate(context: OpContext) -> Sequence[int]:
    def mean(x: int) -> int:
        return GLOBAL_AVERAGE_POOL.translate(replace(context, operands=(x,)))[0]

    return (pooled(context, mean),)


OP = OnnxOp(
    "QLinearGlobalAveragePool",
    _translate,
    signature="X x_scale x_zero_point y_scale y_zero_point -> Y; channels_last:int",
)
