"""ONNX SequenceLength: how many elements a sequence has.

In: a sequence. Out: an i64 of rank 0. Not done here: anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import sequence_of
from ingot_compiler.frontend.build.values import KnownSequence
from ingot_compiler.frontend.families.sequences.packed import length_of


def _translate(context: OpContext) -> Sequence[int]:
    sequence = sequence_of(context, context.operand(0))
    if isinstance(sequence, KnownSequence):
        return (size_scalar(context, len(sequence.items)),)
    return (size_scalar(context, length_of(context, sequence)),)


OP = OnnxOp("SequenceLength", _translate)
