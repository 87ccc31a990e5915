"""ONNX Runtime ConvTransposeWithDynamicPads: ONNX's ConvTranspose, whose pads are an operand.

In: x, weights, perhaps pads and a bias. Out: what ConvTranspose gives. Not done here: pads that are
known at run time only (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    operands = [context.operand(0), context.operand(1), context.optional(3)]
    attributes, given = dict(context.attributes), context.optional(2)
    if given is not None:
        pads = context.known_ints(given)
        if pads is None:
            raise Unsupported("pads that are known at run time only")
        attributes["pads"] = pads
    return results_of(context, "ConvTranspose", operands, attributes)


OP = OnnxOp(
    "ConvTransposeWithDynamicPads",
    _translate,
    signature="X W Pads? B? -> Y; auto_pad:string dilations:ints group:int kernel_shape:ints "
    "output_padding:ints strides:ints",
)
