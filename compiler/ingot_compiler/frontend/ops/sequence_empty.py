"""ONNX SequenceEmpty: a sequence without elements.

In: nothing. Out: a sequence. Not done here: its element type, which nothing needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import make_sequence


def _translate(context: OpContext) -> Sequence[int]:
    return (make_sequence(context, ()),)


OP = OnnxOp("SequenceEmpty", _translate)
