"""ONNX ConcatFromSequence: the elements of a sequence one after the other, or stacked.

In: a sequence. Out: core ``concat``. Not done here: empty sequences, which have no shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import concat, unsqueeze
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_node import counted_axis
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import elements_of
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    elements = elements_of(context, context.operand(0))
    require(len(elements) > 0, "a sequence with elements", "an empty one")
    stacks = context.bool_attribute("new_axis")
    rank = context.rank_of(elements[0]) + stacks
    axis = counted_axis(context.int_attribute("axis", 0), rank)
    parts = [unsqueeze(context, value, (axis,)) for value in elements] if stacks else elements
    return (concat(context, parts, axis),)


OP = OnnxOp("ConcatFromSequence", _translate)
