"""ONNX ReduceLogSumExp: log(sum(e^x)) along axes (an operand since opset 18), without overflow.

In: a tensor, perhaps axes. Out: core ``reduce``, ``exp``, ``log``. Not done here: axes that come at
run time (``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import as_float, cast, reduce, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import reduction_by


def _reduce(context: OpContext, x: int, axes: tuple[int, ...], keepdims: bool) -> int:
    if not axes:
        return x
    dtype, x = context.dtype_of(x), as_float(context, x)
    greatest = reduce(context, x, "max", axes, keepdims=True)
    # Infinite maxima must not be subtracted from themselves.
    infinite = context.add("isinf", greatest, positive=True, negative=True)
    shift = context.add("select", infinite, context.scalar(context.dtype_of(x), 0), greatest)
    powers = context.add("exp", context.add("sub", x, shift))
    total = reduce(context, powers, "sum", axes, keepdims=True)
    result = context.add("add", context.add("log", total), shift)
    kept = [
        size for axis, size in enumerate(context.shape_of(result)) if keepdims or axis not in axes
    ]
    return cast(context, reshape(context, result, kept), dtype)


OP = OnnxOp("ReduceLogSumExp", reduction_by(_reduce, 18))
