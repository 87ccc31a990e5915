"""ONNX ConcatFromSequence: the elements of a sequence one after the other, or stacked.

In: a sequence. Out: core ``concat``, or a gather where a run decides the length. Not done here:
empty sequences, which have no shape (refused).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import concat, unsqueeze
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import sequence_of
from ingot_compiler.frontend.build.values import KnownSequence, PackedSequence
from ingot_compiler.frontend.families.sequences.packed import pack, shape_of
from ingot_compiler.frontend.families.sequences.packed_axes import concatenated
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    sequence, stacks = sequence_of(context, context.operand(0)), context.bool_attribute("new_axis")
    if isinstance(sequence, PackedSequence) or min(sequence.items, default=0) < 0:
        packed = pack(context, sequence)
        if packed.rank is None:
            raise Unsupported("elements whose number of dimensions only a run knows")
        axis = counted_axis(context.int_attribute("axis", 0), packed.rank + stacks)
        return (concatenated(context, packed, axis, stacks=stacks),)
    return (_of_elements(context, sequence, stacks=stacks),)


def _of_elements(context: OpContext, sequence: KnownSequence, *, stacks: bool) -> int:
    elements = sequence.items
    require(len(elements) > 0, "a sequence with elements", "an empty one")
    rank = len(shape_of(context, elements[0])) + stacks
    axis = counted_axis(context.int_attribute("axis", 0), rank)
    parts = [unsqueeze(context, value, (axis,)) for value in elements] if stacks else elements
    return concat(context, parts, axis)


OP = OnnxOp("ConcatFromSequence", _translate)
