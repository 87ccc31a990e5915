"""ONNX If: the results of one of two graphs.

In: a bool and two graphs without inputs, which see the tensors outside. Out: core ``if``, or the
nodes of one graph where the condition is known. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_if
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    then, otherwise = context.body("then_branch"), context.body("else_branch")
    return build_if(context, context.operand(0), then.translate, otherwise.translate)


OP = OnnxOp("If", _translate)
