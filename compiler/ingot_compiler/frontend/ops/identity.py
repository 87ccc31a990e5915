"""ONNX Identity: the operand itself.

In: a tensor, a sequence or an optional. Out: the same value, no core op. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    return (context.operand(0),)


OP = OnnxOp("Identity", _translate)
