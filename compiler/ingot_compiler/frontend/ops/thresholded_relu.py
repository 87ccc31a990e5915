"""ONNX ThresholdedRelu: x where x > alpha, else 0.

In: a float tensor. Out: core ``less``, ``select``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    dtype = context.dtype_of(x)
    above = context.add("less", context.scalar(dtype, context.float_attribute("alpha", 1.0)), x)
    return (context.add("select", above, x, context.scalar(dtype, 0)),)


OP = OnnxOp("ThresholdedRelu", _translate)
