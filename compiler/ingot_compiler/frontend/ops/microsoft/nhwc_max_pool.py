"""ONNX Runtime NhwcMaxPool: ONNX's MaxPool of images whose channels come last.

In: x[N, H, W, C]. Out: what MaxPool gives, with its channels last. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last


def _translate(context: OpContext) -> Sequence[int]:
    x = to_first(context, context.operand(0))
    return (to_last(context, results_of(context, "MaxPool", [x], context.attributes)[0]),)


OP = OnnxOp(
    "NhwcMaxPool",
    _translate,
    signature="x -> y; auto_pad:string ceil_mode:int dilations:ints kernel_shape!:ints pads:ints strides:ints",
)
