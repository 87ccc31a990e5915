"""ONNX PRelu: x where x >= 0, else slope * x, the slope broadcast to x.

In: x and slope. Out: core ``mul``, ``less``, ``select``. Not done here: opset 6 and its slope per
channel.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import less_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, slope = context.operand(0), context.operand(1)
    return (context.add("select", less_scalar(context, x, 0), context.add("mul", x, slope), x),)


OP = OnnxOp("PRelu", _translate, since=7)
