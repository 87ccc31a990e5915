"""ONNX Equal: a == b, elementwise with broadcasting.

In: two tensors of numbers or of strings. Out: core ``equal``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.strings.broadcasting import equal
from ingot_compiler.frontend.families.strings.pool import strings_of


def _translate(context: OpContext) -> Sequence[int]:
    if all(operand >= 0 for operand in context.given()):
        return direct("equal")(context)
    left, right = (strings_of(context, context.operand(at)) for at in range(2))
    return (equal(context, left, right),)


OP = OnnxOp("Equal", _translate)
