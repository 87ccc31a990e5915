"""ONNX Runtime Trilu: ONNX's own op.

In: x[.., R, C], perhaps the diagonal k. Out: what ONNX's Trilu gives. Not done here: the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    upper = context.int_attribute("upper", 1)
    return (as_onnx(context, "Trilu", context.operand(0), context.optional(1), upper=upper),)


OP = OnnxOp("Trilu", _translate, signature="X k? -> Y; upper:int")
