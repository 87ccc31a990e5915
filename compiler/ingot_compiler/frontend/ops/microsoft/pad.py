"""ONNX Runtime Pad: ONNX's own op of opset 11.

In: a tensor, pads in one row or as a vector, perhaps a value. Out: what ONNX's Pad gives. Not done
here: the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    pads = context.operand(1)
    if context.rank_of(pads) == 2:
        pads = reshape(context, pads, (context.type_of(pads).element_count,))
    mode = context.string_attribute("mode", "constant")
    return (
        as_onnx(context, "Pad", context.operand(0), pads, context.optional(2), opset=11, mode=mode),
    )


OP = OnnxOp("Pad", _translate, signature="data pads value? -> output; mode:string")
