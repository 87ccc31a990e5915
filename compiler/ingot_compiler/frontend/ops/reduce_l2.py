"""ONNX ReduceL2: square root of the sum of squares along axes (an operand since opset 18).

In: a tensor, perhaps axes. Out: core ``mul``, ``reduce``, ``sqrt``. Not done here: axes that come
at run time (``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import as_float, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import reduction


def _square(context: OpContext, x: int) -> int:
    return context.add("mul", x, x)


def _root(context: OpContext, x: int) -> int:
    return cast(context, context.add("sqrt", as_float(context, x)), context.dtype_of(x))


OP = OnnxOp("ReduceL2", reduction("sum", 18, before=_square, after=_root))
