"""ONNX LRN: x / (bias + alpha / size * sum of x^2 over neighbouring channels)^beta.

In: x[N, C, spatial..] of floats. Out: core ``mul``, ``pad``, ``slice`` and ``add`` for the sums,
``sqrt`` or ``pow`` for the power, ``div``. Not done here: types.

Not a pooling over channels: its windows lie along the axis whose elements are vectors in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from ingot_compiler.frontend.build.compose import binary_scalar, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from
from ingot_compiler.ir.dims import dim_add

_CHANNELS = 1
_RUN = 8
"""Summands of one sum; longer windows are sums of such sums."""


def _translate(context: OpContext) -> Sequence[int]:
    x, size = context.operand(0), context.int_attribute("size", 1)
    channels = sizes_from(context, x, 2)[_CHANNELS]
    furthest = max(0, channels - 1) if isinstance(channels, int) else size
    before, after = min((size - 1) // 2, furthest), min(size // 2, furthest)
    sums = _window_sums(context, context.add("mul", x, x), before, after)
    base = binary_scalar(context, "mul", sums, context.float_attribute("alpha", 0.0001) / size)
    base = binary_scalar(context, "add", base, context.float_attribute("bias", 1.0))
    return (context.add("div", x, _power(context, base, context.float_attribute("beta", 0.75))),)


def _power(context: OpContext, base: int, exponent: float) -> int:
    """Roots for the exponent of almost all models: they take a tenth of the time of ``pow``."""
    if exponent != 0.75:
        return binary_scalar(context, "pow", base, exponent)
    root = context.add("sqrt", base)
    return context.add("mul", root, context.add("sqrt", root))


def _window_sums(context: OpContext, x: int, before: int, after: int) -> int:
    """For each channel the sum from so many channels before it to so many after it; those outside
    are 0. By the digits of the window's length: those of the last one are summed as they are, those
    of the next one are runs, and so on."""
    channels, none = context.shape_of(x)[_CHANNELS], [0] * (context.rank_of(x) - 2)
    runs = context.add(
        "pad", x, context.scalar(context.dtype_of(x), 0.0),
        before=(0, before, *none), after=(0, after, *none), mode="constant",
    )  # fmt: skip
    parts: list[int] = []
    start, run, left = 0, 1, before + after + 1
    while left:
        left, digit = divmod(left, _RUN)
        for _ in range(digit):
            parts.append(slice_axis(context, runs, _CHANNELS, start, channels))
            start += run
        if left:
            size = dim_add(context.shape_of(runs)[_CHANNELS], -run * (_RUN - 1))
            starts = (index * run for index in range(_RUN))
            runs = _sum(
                context, [slice_axis(context, runs, _CHANNELS, each, size) for each in starts]
            )
            run *= _RUN
    return _sum(context, parts)


def _sum(context: OpContext, values: Sequence[int]) -> int:
    return reduce(partial(context.add, "add"), values)


OPS = (OnnxOp("LRN", _translate),)
