"""ONNX ReduceLogSum: logarithm of the sum along axes (an operand since opset 18).

In: a tensor, perhaps axes. Out: core ``reduce``, ``log``. Not done here: axes that come at run time
(``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import as_float, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import reduction


def _log(context: OpContext, x: int) -> int:
    return cast(context, context.add("log", as_float(context, x)), context.dtype_of(x))


OP = OnnxOp("ReduceLogSum", reduction("sum", 18, after=_log))
