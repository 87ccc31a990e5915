"""ONNX ReduceL1: sum of absolute values along axes (an operand since opset 18).

In: a tensor, perhaps axes. Out: core ``abs``, ``reduce``. Not done here: axes that come at run time
(``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import reduction


def _absolute(context: OpContext, x: int) -> int:
    return context.add("abs", x)


OP = OnnxOp("ReduceL1", reduction("sum", 18, before=_absolute))
