"""ONNX's pools of means, norms and whole images; those of maxima per window are ``max_pool``.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ingot_compiler.frontend.build.compose import binary_scalar, reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import pool, pool_attributes, spatial_count
from ingot_compiler.ir.attributes import Attribute, attribute_ints
from ingot_compiler.ir.op_type_error import OpTypeError


def _average_pool(context: OpContext) -> Sequence[int]:
    """The mean per window, with or without padding.

    In: x[N, C, spatial..] of floats. Out: core ``average_pool``.
    """
    x = context.operand(0)
    attributes, counted = pool_attributes(context, x)
    include = context.bool_attribute("count_include_pad")
    counts: dict[str, Attribute] = {"count_include_pad": include, "pads_counted_after": counted}
    return (pool(context, "average_pool", x, attributes, **counts),)


AVERAGE_POOL = OnnxOp("AveragePool", _average_pool)


def _global_average_pool(context: OpContext) -> Sequence[int]:
    """The mean over all spatial axes.

    In: x[N, C, spatial..]. Out: core ``reduce``.
    """
    x = context.operand(0)
    axes = tuple(range(2, 2 + spatial_count(context, x)))
    return (reduce(context, x, "mean", axes, keepdims=True),)


GLOBAL_AVERAGE_POOL = OnnxOp("GlobalAveragePool", _global_average_pool)


def _global_lp_pool(context: OpContext) -> Sequence[int]:
    """The p-norm over all spatial axes.

    In: x[N, C, spatial..]. Out: core ``abs``, ``pow``, ``reduce``.
    """
    x, p = context.operand(0), context.int_attribute("p", 2)
    if p == 0:
        raise OpTypeError("p above 0", "0")
    powers = binary_scalar(context, "pow", context.add("abs", x), p)
    axes = tuple(range(2, 2 + spatial_count(context, x)))
    return (
        binary_scalar(
            context,
            "pow",
            reduce(context, powers, "sum", axes, keepdims=True),
            1 / p,
        ),
    )


def _global_max_pool(context: OpContext) -> Sequence[int]:
    """The greatest element over all spatial axes.

    In: x[N, C, spatial..]. Out: core ``reduce``.
    """
    x = context.operand(0)
    axes = tuple(range(2, 2 + spatial_count(context, x)))
    return (reduce(context, x, "max", axes, keepdims=True),)


def _lp_pool(context: OpContext) -> Sequence[int]:
    """The p-norm per window.

    In: x[N, C, spatial..] of floats. Out: core ``abs``, ``pow``, ``average_pool``, ``mul``.
    """
    x, p = context.operand(0), context.int_attribute("p", 2)
    if p == 0:
        raise OpTypeError("p above 0", "0")
    attributes, _ = pool_attributes(context, x)
    # A sum is the mean over every element of the window, padding counted as 0, times their number.
    powers = binary_scalar(context, "pow", context.add("abs", x), p)
    counted = attributes["pads_after"]
    counts: dict[str, Attribute] = {"count_include_pad": True, "pads_counted_after": counted}
    means = pool(context, "average_pool", powers, attributes, **counts)
    sums = binary_scalar(context, "mul", means, prod(attribute_ints(attributes, "kernel")))
    return (binary_scalar(context, "pow", sums, 1 / p),)


OPS = (
    AVERAGE_POOL,
    GLOBAL_AVERAGE_POOL,
    OnnxOp("GlobalLpPool", _global_lp_pool, since=2),
    OnnxOp("GlobalMaxPool", _global_max_pool),
    OnnxOp("LpPool", _lp_pool, since=2),
)
