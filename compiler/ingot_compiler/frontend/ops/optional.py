"""ONNX Optional: the operand itself, or an optional that holds nothing.

In: perhaps a tensor or a sequence. Out: the same value. Not done here: optionals that a run decides
(unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import make_empty_optional


def _translate(context: OpContext) -> Sequence[int]:
    value = context.optional(0)
    return (make_empty_optional(context) if value is None else value,)


OP = OnnxOp("Optional", _translate)
