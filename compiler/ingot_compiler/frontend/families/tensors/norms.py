"""Normalisation over axes, from reductions and elementwise ops.

In: a context and a value. Out: the value with mean 0 and variance 1 over the axes. Not done here:
the row ops (``ir/ops``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import binary_scalar, reduce
from ingot_compiler.frontend.build.context import OpContext


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
