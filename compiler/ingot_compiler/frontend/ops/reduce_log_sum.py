"""ONNX ReduceLogSum: logarithm of the sum along axes (an operand since opset 18).

In: a tensor, perhaps axes. Out: core ``reduce``, ``log``. Not done here: axes that come at run time
(``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.compose import as_float, cast
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.reductions import reduction


def _log(context: OpContext, x: int) -> int:
    return cast(context, context.add("log", as_float(context, x)), context.dtype_of(x))


OP = OnnxOp("ReduceLogSum", reduction("sum", 18, after=_log))
