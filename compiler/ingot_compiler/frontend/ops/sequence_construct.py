"""ONNX SequenceConstruct: a sequence of its operands.

In: tensors. Out: a sequence that is known while the model is translated. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import make_sequence


def _translate(context: OpContext) -> Sequence[int]:
    return (make_sequence(context, context.given()),)


OP = OnnxOp("SequenceConstruct", _translate)
