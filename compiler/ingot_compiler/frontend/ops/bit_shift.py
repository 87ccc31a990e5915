"""ONNX BitShift: bits moved left or right.

In: two integer tensors. Out: core ``shift_left`` or ``shift_right``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_names import OpName


def _translate(context: OpContext) -> Sequence[int]:
    direction = context.string_attribute("direction", "", ("LEFT", "RIGHT"))
    op: OpName = "shift_left" if direction == "LEFT" else "shift_right"
    return (context.add(op, context.operand(0), context.operand(1)),)


OP = OnnxOp("BitShift", _translate)
