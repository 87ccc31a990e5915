"""ONNX SequenceAt: one element of a sequence.

In: a sequence, a position. Out: the tensor. Not done here: positions that lie outside, which are
refused (``sequences``, ``packed``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import known_position, sequence_of
from ingot_compiler.frontend.build.values import KnownSequence
from ingot_compiler.frontend.families.sequences.packed import counted, element_at, length_of, pack


def _translate(context: OpContext) -> Sequence[int]:
    sequence, position = sequence_of(context, context.operand(0)), context.operand(1)
    if isinstance(sequence, KnownSequence):
        at = known_position(context, position, len(sequence.items))
        if at is not None:
            return (sequence.items[at],)
    packed = pack(context, sequence)
    at = counted(context, position, length_of(context, packed))
    return (element_at(context, packed, at),)


OP = OnnxOp("SequenceAt", _translate)
