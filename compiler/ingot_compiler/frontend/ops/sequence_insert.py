"""ONNX SequenceInsert: a sequence with one element more, at a position or at the end.

In: a sequence, a tensor, perhaps a position. Out: a sequence. Not done here: positions that lie
outside, which are refused (``sequences``, ``packed``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import (
    add_value,
    known_position,
    make_sequence,
    sequence_of,
)
from ingot_compiler.frontend.build.values import KnownSequence
from ingot_compiler.frontend.families.sequences.packed import counted, inserted, length_of, pack


def _translate(context: OpContext) -> Sequence[int]:
    sequence, value = sequence_of(context, context.operand(0)), context.operand(1)
    given = context.optional(2)
    if isinstance(sequence, KnownSequence):
        items = sequence.items
        count = len(items)
        at = count if given is None else known_position(context, given, count, to_end=True)
        if at is not None:
            return (make_sequence(context, (*items[:at], value, *items[at:])),)
    packed = pack(context, sequence)
    place = None
    if given is not None:
        place = counted(context, given, length_of(context, packed), to_end=True)
    return (add_value(context, inserted(context, packed, value, place)),)


OP = OnnxOp("SequenceInsert", _translate)
