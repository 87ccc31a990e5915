"""ONNX's normalizations of rows, groups and channels.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    full,
    in_dtype,
    reduce,
    reshape,
    unsqueeze,
    widest,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType


def moments(context: OpContext, x: int, axes: tuple[int, ...], epsilon: float) -> tuple[int, int]:
    """Mean, and 1 / sqrt(variance + epsilon), over ``axes``, which stay with size 1."""
    mean = reduce(context, x, "mean", axes, keepdims=True)
    centred = context.add("sub", x, mean)
    variance = reduce(context, context.add("mul", centred, centred), "mean", axes, keepdims=True)
    return mean, context.add(
        "reciprocal", context.add("sqrt", binary_scalar(context, "add", variance, epsilon))
    )


def standardise(context: OpContext, x: int, axes: tuple[int, ...], epsilon: float) -> int:
    """(x - mean) / sqrt(variance + epsilon) over ``axes``."""
    mean, inverse = moments(context, x, axes, epsilon)
    return context.add("mul", context.add("sub", x, mean), inverse)


def _batch_normalization(context: OpContext) -> Sequence[int]:
    """Statistics per channel, given, or those of the batch (training).

    In: x[N, C, ..], scale, bias, mean, variance [C]. Out: core ``batch_norm``; in training also the
    running mean and variance.
    """
    if not context.int_attribute("spatial", 1):
        raise Unsupported("statistics per element (spatial = 0)")
    values, dtype = context.given(), context.dtype_of(context.operand(0))
    if len(context.shape_of(values[0])) < 2:
        raise OpTypeError("x[N, C, ..] of rank >= 2", context.type_of(values[0]))
    wide = in_dtype(context, values, widest([context.dtype_of(value) for value in values]))
    if context.bool_attribute("training_mode"):
        return _trained(context, wide)
    return (cast(context, _normalised_batch_normalization(context, *wide), dtype),)


def _normalised_batch_normalization(context: OpContext, *operands: int) -> int:
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
        context,
        _normalised_batch_normalization(context, x, scale, bias, *found),
        context.dtype_of(context.given()[0]),
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


def _group_normalization(context: OpContext) -> Sequence[int]:
    """Groups of channels of every sample; scale and bias per group in opset 18, per channel from
    21.

    In: x[N, C, ..], scale, bias. Out: core ``group_norm``.
    """
    x, groups = context.operand(0), context.int_attribute("num_groups", 1)
    channels = context.shape_of(x)[1] if context.rank_of(x) > 1 else 0
    if groups < 1:
        raise OpTypeError("num_groups >= 1", groups)
    parameters = [context.operand(1), context.operand(2)]
    if context.opset < 21:
        size = dim_floordiv(channels, groups)
        wide = [
            broadcast_to(context, unsqueeze(context, value, (1,)), (groups, size))
            for value in parameters
        ]
        parameters = [reshape(context, value, (channels,)) for value in wide]
    epsilon = context.float_attribute("epsilon", 1e-5)
    return (context.add("group_norm", x, *parameters, groups=groups, epsilon=epsilon),)


def _instance_normalization(context: OpContext) -> Sequence[int]:
    """Every channel of every sample by itself.

    In: x[N, C, spatial..], scale and bias [C]. Out: core ``group_norm`` with one channel per group;
    for a number of channels that is known at run time only, ``reduce`` and elementwise ops.
    """
    x, scale, bias = (context.operand(position) for position in range(3))
    epsilon, shape = context.float_attribute("epsilon", 1e-5), context.shape_of(x)
    if len(shape) < 3:
        raise OpTypeError("x[N, C, spatial..] of rank >= 3", context.type_of(x))
    if isinstance(shape[1], int):
        return (context.add("group_norm", x, scale, bias, groups=shape[1], epsilon=epsilon),)
    per_channel = (context.type_of(scale).element_count, *[1] * (len(shape) - 2))
    normal = standardise(context, x, tuple(range(2, len(shape))), epsilon)
    weighted = context.add("mul", normal, reshape(context, scale, per_channel))
    return (context.add("add", weighted, reshape(context, bias, per_channel)),)


def _layer_normalization(context: OpContext) -> Sequence[int]:
    """Mean 0 and variance 1 over the last axes, scaled and shifted.

    In: x, scale, perhaps bias. Out: core ``layer_norm``; the optional Mean and InvStdDev from
    ``reduce``.
    """
    x = context.operand(0)
    rank = context.rank_of(x)
    axis, epsilon = context.axis_attribute(-1, rank), context.float_attribute("epsilon", 1e-5)
    result = _normalised_layer_normalization(context, x, axis, epsilon)
    if not (context.wants(1) or context.wants(2)):
        return (result,)
    # Statistics are f32 even of a half type (stash_type).
    wide = cast(context, x, "f32") if context.int_attribute("stash_type", 1) == 1 else x
    return result, *moments(context, wide, tuple(range(axis, rank)), epsilon)


def _normalised_layer_normalization(context: OpContext, x: int, axis: int, epsilon: float) -> int:
    scale, bias = context.operand(1), context.optional(2)
    dtype, tail = context.dtype_of(x), context.shape_of(x)[axis:]
    if context.rank_of(scale) > len(tail):
        # Parameters that differ between rows.
        ones, zeros = full(context, dtype, 1, tail), full(context, dtype, 0, tail)
        normal = context.add("layer_norm", x, ones, zeros, axis=axis, epsilon=epsilon)
        result = context.add("mul", normal, scale)
        return result if bias is None else context.add("add", result, bias)
    shift = full(context, dtype, 0, tail) if bias is None else broadcast_to(context, bias, tail)
    wide = broadcast_to(context, scale, tail)
    return context.add("layer_norm", x, wide, shift, axis=axis, epsilon=epsilon)


# ONNX Runtime writes it into models of opsets before 17, too.


def _rms_normalization(context: OpContext) -> Sequence[int]:
    """``x / sqrt(mean of x^2 + epsilon)`` over the last axes, scaled.

    In: x, scale. Out: core ``rms_norm``.
    """
    x, scale = context.operand(0), context.operand(1)
    axis = context.axis_attribute(-1, context.rank_of(x))
    epsilon, tail = context.float_attribute("epsilon", 1e-5), context.shape_of(x)[axis:]
    if len(context.shape_of(scale)) > len(tail):
        ones = full(context, context.dtype_of(x), 1, tail)
        return (
            context.add("mul", context.add("rms_norm", x, ones, axis=axis, epsilon=epsilon), scale),
        )
    return (
        context.add("rms_norm", x, broadcast_to(context, scale, tail), axis=axis, epsilon=epsilon),
    )


OPS = (
    OnnxOp("BatchNormalization", _batch_normalization, since=7),
    OnnxOp("GroupNormalization", _group_normalization),
    OnnxOp("InstanceNormalization", _instance_normalization, since=6),
    OnnxOp(
        "LayerNormalization",
        _layer_normalization,
        signature="X Scale B? -> Y Mean? InvStdDev?; axis:int epsilon:float stash_type:int",
    ),
    OnnxOp("RMSNormalization", _rms_normalization),
)
