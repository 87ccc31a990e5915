"""ONNX BatchNormalization: statistics per channel, given, or those of the batch (training).

In: x[N, C, ..], scale, bias, mean, variance [C]. Out: core ``batch_norm``; in training also the
running mean and variance. Not done here: training before opset 14 (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    in_dtype,
    reduce,
    reshape,
    widest,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType


def _translate(context: OpContext) -> Sequence[int]:
    if not context.int_attribute("spatial", 1):
        raise Unsupported("statistics per element (spatial = 0)")
    values, dtype = context.given(), context.dtype_of(context.operand(0))
    if len(context.shape_of(values[0])) < 2:
        raise OpTypeError("x[N, C, ..] of rank >= 2", context.type_of(values[0]))
    wide = in_dtype(context, values, widest([context.dtype_of(value) for value in values]))
    if context.bool_attribute("training_mode"):
        return _trained(context, wide)
    return (cast(context, _normalised(context, *wide), dtype),)


def _normalised(context: OpContext, *operands: int) -> int:
    return context.add("batch_norm", *operands, epsilon=context.float_attribute("epsilon", 1e-5))


def _trained(context: OpContext, wide: Sequence[int]) -> tuple[int, ...]:
    """The statistics of the batch, which move those that are given."""
    x, scale, bias, *given = wide
    axes = tuple(axis for axis in range(context.rank_of(x)) if axis != 1)
    mean = reduce(context, x, "mean", axes, keepdims=True)
    off = context.add("sub", x, mean)
    variance = reduce(context, context.add("mul", off, off), "mean", axes)
    found = reshape(context, mean, context.shape_of(variance)), variance
    y = cast(
        context, _normalised(context, x, scale, bias, *found), context.dtype_of(context.given()[0])
    )
    momentum = context.float_attribute("momentum", 0.9)
    running = [
        context.add(
            "add",
            binary_scalar(context, "mul", old, momentum),
            binary_scalar(context, "mul", new, 1.0 - momentum),
        )
        for old, new in zip(given, found, strict=True)
    ]
    dtypes: list[DType] = [context.dtype_of(operand) for operand in context.given()[3:]]
    return y, *(cast(context, value, own) for value, own in zip(running, dtypes, strict=True))


OP = OnnxOp("BatchNormalization", _translate, since=7)
