"""ONNX Mod: remainder with the sign of the divisor, or of the dividend with ``fmod``.

In: two tensors of numbers. Out: core ``mod`` or ``fmod``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_names import OpName


def _translate(context: OpContext) -> Sequence[int]:
    op: OpName = "fmod" if context.int_attribute("fmod", 0) else "mod"
    return (context.add(op, context.operand(0), context.operand(1)),)


OP = OnnxOp("Mod", _translate)
