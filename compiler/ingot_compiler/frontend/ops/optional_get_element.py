"""ONNX OptionalGetElement: what an optional holds.

In: a tensor, a sequence or an optional. Out: the same value; a call whose optional holds nothing is
refused. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import parts_of, value_of
from ingot_compiler.frontend.build.value_kinds import kind_of, remade
from ingot_compiler.frontend.build.values import Maybe, Nothing
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    value = context.operand(0)
    found = value_of(context, value)
    full = "an optional with an element"
    require(not isinstance(found, Nothing), full, "an empty one")
    if not isinstance(found, Maybe):
        return (value,)
    first, *others = parts_of(context, found.value)
    parts = checked(context, first, found.given, full), *others
    return (remade(context, kind_of(context, found.value), iter(parts)),)


OP = OnnxOp("OptionalGetElement", _translate)
