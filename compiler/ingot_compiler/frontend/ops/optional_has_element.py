"""ONNX OptionalHasElement: whether there is an operand that holds something.

In: perhaps a tensor, a sequence or an optional. Out: a bool, known unless the optional is an input or
what a branch gives. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import value_of
from ingot_compiler.frontend.build.values import Maybe, Nothing


def _translate(context: OpContext) -> Sequence[int]:
    value = context.optional(0)
    found = None if value is None else value_of(context, value)
    if isinstance(found, Maybe):
        return (found.given,)
    return (context.scalar("bool", value is not None and not isinstance(found, Nothing)),)


OP = OnnxOp("OptionalHasElement", _translate)
