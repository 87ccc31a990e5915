"""ONNX Runtime QLinearConv: ONNX's, of images whose channels may come last.

In: x[N, C, spatial..] or [N, spatial.., C] and weights with scales and zero points, those of the
result, perhaps a bias. Out: an 8-bit image of the same form. Not done here: the op itself
(``ops/q_linear_conv``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last


def _translate(context: OpContext) -> Sequence[int]:
    attributes = dict(context.attributes)
    attributes.pop("channels_last", None)
    x, *others = (context.optional(position) for position in range(9))
    if x is None or not context.bool_attribute("channels_last"):
        return results_of(context, "QLinearConv", [x, *others], attributes)
    (result,) = results_of(context, "QLinearConv", [to_first(context, x), *others], attributes)
    return (to_last(context, result),)


OP = OnnxOp(
    "QLinearConv",
    _translate,
    signature="x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B? -> y; "
    "auto_pad:string channels_last:int dilations:ints group:int kernel_shape:ints pads:ints "
    "strides:ints",
)
