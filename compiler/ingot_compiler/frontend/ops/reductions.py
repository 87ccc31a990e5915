"""ONNX's reductions over axes.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import as_float, cast, reduce, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import arg_extreme, reduction, reduction_by


def _absolute(context: OpContext, x: int) -> int:
    return context.add("abs", x)


def _square(context: OpContext, x: int) -> int:
    return context.add("mul", x, x)


def _root(context: OpContext, x: int) -> int:
    return cast(context, context.add("sqrt", as_float(context, x)), context.dtype_of(x))


def _log(context: OpContext, x: int) -> int:
    return cast(context, context.add("log", as_float(context, x)), context.dtype_of(x))


def _reduce(context: OpContext, x: int, axes: tuple[int, ...], keepdims: bool) -> int:
    """``log(sum(e^x))`` along axes (an operand since opset 18), without overflow.

    In: a tensor, perhaps axes. Out: core ``reduce``, ``exp``, ``log``.
    """
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


OPS = (
    OnnxOp("ArgMax", arg_extreme("argmax")),
    OnnxOp("ArgMin", arg_extreme("argmin")),
    OnnxOp("ReduceL1", reduction("sum", 18, before=_absolute)),
    OnnxOp("ReduceL2", reduction("sum", 18, before=_square, after=_root)),
    OnnxOp("ReduceLogSum", reduction("sum", 18, after=_log)),
    OnnxOp("ReduceLogSumExp", reduction_by(_reduce, 18)),
    OnnxOp("ReduceMax", reduction("max", 18)),
    OnnxOp("ReduceMean", reduction("mean", 18)),
    OnnxOp("ReduceMin", reduction("min", 18)),
    OnnxOp("ReduceProd", reduction("product", 18)),
    OnnxOp("ReduceSum", reduction("sum", 13)),
    OnnxOp("ReduceSumSquare", reduction("sum", 18, before=_square)),
)
