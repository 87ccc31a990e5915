"""ONNX ReduceSumSquare: sum of squares along axes (an operand since opset 18).

In: a tensor, perhaps axes. Out: core ``mul``, ``reduce``. Not done here: axes that come at run time
(``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import reduction


def _square(context: OpContext, x: int) -> int:
    return context.add("mul", x, x)


OP = OnnxOp("ReduceSumSquare", reduction("sum", 18, before=_square))
