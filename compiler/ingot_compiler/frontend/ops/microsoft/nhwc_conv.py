"""ONNX Runtime NhwcConv: ONNX's Conv of images whose channels come last.

In: x[N, H, W, C], weights [O, C / group, kernel..], perhaps a bias. Out: what Conv gives, with its
channels last. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.as_onnx import results_of
from ingot_compiler.frontend.channels_last import to_first, to_last
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    operands = [to_first(context, context.operand(0)), context.operand(1), context.optional(2)]
    return (to_last(context, results_of(context, "Conv", operands, context.attributes)[0]),)


OP = OnnxOp(
    "NhwcConv",
    _translate,
    signature="X W B? -> Y; auto_pad:string dilations:ints group:int kernel_shape:ints p"
    "ads:ints strides:ints",
)
