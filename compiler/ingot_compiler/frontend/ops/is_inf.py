"""ONNX IsInf: whether x is infinite, of the signs that the attributes ask for.

In: a float tensor. Out: core ``isinf``. Not done here: 8-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    positive, negative = (
        context.int_attribute("detect_positive", 1),
        context.int_attribute("detect_negative", 1),
    )
    return (
        context.add("isinf", context.operand(0), positive=bool(positive), negative=bool(negative)),
    )


OP = OnnxOp("IsInf", _translate)
