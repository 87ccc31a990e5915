"""ONNX Runtime QLinearAveragePool: means of windows of a quantised image, quantised.

In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.average_pool import OP as AVERAGE_POOL
from ingot_compiler.frontend.ops.microsoft.q_linear_global_average_pool import pooled


def _translate(context: OpContext) -> Sequence[int]:
    def windows(x: int) -> int:
        return AVERAGE_POOL.translate(replace(context, operands=(x,)))[0]

    return (pooled(context, windows),)


OP = OnnxOp(
    "QLinearAveragePool",
    _translate,
    signature="X x_scale x_zero_point? y_scale y_zero_point? -> Y; auto_pad:string ceil_mode:int "
    "channels_last:int count_include_pad:int kernel_shape!:ints pads:ints strides:ints",
)
