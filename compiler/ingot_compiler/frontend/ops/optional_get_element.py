"""ONNX OptionalGetElement: what an optional holds.

In: a tensor, a sequence or an optional. Out: the same value. Not done here: optionals that a run
decides (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import is_empty_optional
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    value = context.operand(0)
    require(not is_empty_optional(context, value), "an optional with an element", "an empty one")
    return (value,)


OP = OnnxOp("OptionalGetElement", _translate)
