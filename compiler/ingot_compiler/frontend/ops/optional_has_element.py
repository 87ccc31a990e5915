"""ONNX OptionalHasElement: whether there is an operand that holds something.

In: perhaps a tensor, a sequence or an optional. Out: a bool that is known. Not done here: optionals
that a run decides (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import is_empty_optional


def _translate(context: OpContext) -> Sequence[int]:
    value = context.optional(0)
    return (context.scalar("bool", value is not None and not is_empty_optional(context, value)),)


OP = OnnxOp("OptionalHasElement", _translate)
