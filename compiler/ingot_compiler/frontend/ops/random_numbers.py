"""ONNX's ops that draw random numbers.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reduce, slice_axis, unsqueeze, wide_float
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.random_numbers import (
    normal,
    scaled_to,
    uniform,
    wanted_dtype,
    wanted_shape,
)
from ingot_compiler.ir.op_type_error import require


def _bernoulli(context: OpContext) -> Sequence[int]:
    """1 with the probability that an element is, else 0.

    In: a float tensor of probabilities. Out: the same shape.
    """
    x = context.operand(0)
    dtype = wanted_dtype(context, context.dtype_of(x), floats_only=False)
    wide = wide_float(context.dtype_of(x))
    drawn = uniform(context, wide, context.shape_of(x))
    return (cast(context, context.add("less", drawn, cast(context, x, wide)), dtype),)


def _multinomial(context: OpContext) -> Sequence[int]:
    """Classes drawn by their unnormalised log probabilities.

    In: [batch, classes]. Out: i32 or i64 [batch, sample_size].

    The class of a number u in [0, 1) is the first whose sum of probabilities up to it is above u
    times the whole sum.
    """
    x, count = context.operand(0), context.int_attribute("sample_size", 1)
    require(context.rank_of(x) == 2, "[batch, classes]", context.type_of(x))
    require(count >= 0, "a sample_size from 0 on", count)
    dtype = wanted_dtype(context, "i32", floats_only=False)
    if dtype not in ("i32", "i64"):
        raise Unsupported(f"classes as {dtype}")
    x = cast(context, x, wide_float(context.dtype_of(x)))
    most = reduce(context, x, "max", (1,), keepdims=True)
    parts = context.add("exp", context.add("sub", x, most))
    sums = context.add("cumsum", parts, axis=1, exclusive=False, reverse=False)
    batch, classes = context.shape_of(x)
    total = slice_axis(context, sums, 1, classes - 1, 1)
    limit = context.add("mul", uniform(context, context.dtype_of(x), (batch, count)), total)
    inner = slice_axis(context, sums, 1, 0, classes - 1)
    passed = context.add(
        "less_equal", unsqueeze(context, inner, (1,)), unsqueeze(context, limit, (2,))
    )
    return (reduce(context, cast(context, passed, dtype), "sum", (2,)),)


def _random_normal(context: OpContext) -> Sequence[int]:
    """Normal numbers of a mean and a standard deviation.

    In: nothing; the shape is an attribute. Out: a float tensor.
    """
    dtype = wanted_dtype(context, "f32")
    factor, offset = context.float_attribute("scale", 1.0), context.float_attribute("mean", 0.0)
    return (
        scaled_to(context, normal(context, dtype, wanted_shape(context)), factor, offset, dtype),
    )


def _random_normal_like(context: OpContext) -> Sequence[int]:
    """Normal numbers of a mean and a standard deviation.

    In: a tensor, whose shape the result has. Out: a float tensor.
    """
    dtype = wanted_dtype(context, context.dtype_of(context.operand(0)))
    factor, offset = context.float_attribute("scale", 1.0), context.float_attribute("mean", 0.0)
    return (
        scaled_to(context, normal(context, dtype, wanted_shape(context)), factor, offset, dtype),
    )


def _random_uniform(context: OpContext) -> Sequence[int]:
    """Numbers that lie evenly between two limits.

    In: nothing; the shape is an attribute. Out: a float tensor.
    """
    dtype = wanted_dtype(context, "f32")
    offset = context.float_attribute("low", 0.0)
    factor = context.float_attribute("high", 1.0) - offset
    return (
        scaled_to(context, uniform(context, dtype, wanted_shape(context)), factor, offset, dtype),
    )


def _random_uniform_like(context: OpContext) -> Sequence[int]:
    """Numbers that lie evenly between two limits.

    In: a tensor, whose shape the result has. Out: a float tensor.
    """
    dtype = wanted_dtype(context, context.dtype_of(context.operand(0)))
    offset = context.float_attribute("low", 0.0)
    factor = context.float_attribute("high", 1.0) - offset
    return (
        scaled_to(context, uniform(context, dtype, wanted_shape(context)), factor, offset, dtype),
    )


OPS = (
    OnnxOp("Bernoulli", _bernoulli),
    OnnxOp("Multinomial", _multinomial),
    OnnxOp("RandomNormal", _random_normal),
    OnnxOp("RandomNormalLike", _random_normal_like),
    OnnxOp("RandomUniform", _random_uniform),
    OnnxOp("RandomUniformLike", _random_uniform_like),
)
