"""ONNX SequenceErase: a sequence without one element, at a position or the last.

In: a sequence, perhaps a position. Out: a sequence. Not done here: positions that lie outside, which
are refused (``sequences``, ``packed``).
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
from ingot_compiler.frontend.families.sequences.packed import counted, erased, length_of, pack
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    sequence, given = sequence_of(context, context.operand(0)), context.optional(1)
    if isinstance(sequence, KnownSequence):
        items = sequence.items
        require(len(items) > 0, "a sequence with elements", "an empty one")
        at = len(items) - 1 if given is None else known_position(context, given, len(items))
        if at is not None:
            return (make_sequence(context, (*items[:at], *items[at + 1 :])),)
    packed = pack(context, sequence)
    position = context.scalar("i64", -1) if given is None else given
    place = counted(context, position, length_of(context, packed))
    return (add_value(context, erased(context, packed, place)),)


OP = OnnxOp("SequenceErase", _translate)
