"""ONNX Runtime FusedConv: ONNX's Conv, perhaps plus a residual, and an activation.

In: x, weights, perhaps a bias and a tensor of the result's shape. Out: what Conv gives, added and
activated. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.activations import activated, by_list
from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.frontend.model.onnx_node import RegionBody


def of_conv(context: OpContext) -> dict[str, ImportedAttribute | RegionBody]:
    """The attributes that ONNX's Conv has."""
    own = ("activation", "activation_params")
    return {name: value for name, value in context.attributes.items() if name not in own}


def _translate(context: OpContext) -> Sequence[int]:
    operands = [context.operand(0), context.operand(1), context.optional(2)]
    (result,) = results_of(context, "Conv", operands, of_conv(context))
    return (finished(context, result),)


def finished(context: OpContext, result: int) -> int:
    """What the convolution gives, plus the residual if there is one, activated."""
    residual = context.optional(3)
    if residual is not None:
        result = context.add("add", result, residual)
    return activated(context, result, *by_list(context))


OP = OnnxOp(
    "FusedConv",
    _translate,
    signature="X W B? Z? -> Y; activation:string activation_params:floats auto_pad:string dilations:ints "
    "group:int kernel_shape:ints pads:ints strides:ints",
)
