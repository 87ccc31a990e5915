"""ONNX Optional: the operand itself, or an optional that holds nothing.

In: perhaps a tensor or a sequence. Out: the same value. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Nothing


def _translate(context: OpContext) -> Sequence[int]:
    value = context.optional(0)
    return (add_value(context, Nothing()) if value is None else value,)


OP = OnnxOp("Optional", _translate)
