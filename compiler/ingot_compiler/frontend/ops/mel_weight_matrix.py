"""ONNX MelWeightMatrix: triangles that gather the bins of a spectrogram into mel bins.

In: scalars: mel bins, the length of the DFT, the sample rate, the edges in Hz. Out: [bins, mel
bins]. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    iota,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import read_size
from ingot_compiler.frontend.families.tensors.random_numbers import wanted_dtype
from ingot_compiler.ir.dims import Dim, dim_floordiv

_MEL = 2595 / math.log(10)  # mel(f) = _MEL * log(1 + f / _HERTZ)
_HERTZ = 700


def _translate(context: OpContext) -> Sequence[int]:
    mels = read_size(context, cast(context, context.operand(0), "i64"))
    length = read_size(context, cast(context, context.operand(1), "i64"))
    bins = dim_floordiv(length, 2) + 1
    ends = _ends(context, mels, length)
    lower, center, higher = (slice_axis(context, ends, 0, start, mels) for start in range(3))
    j = reshape(context, cast(context, iota(context, bins), "f64"), (bins, 1))
    rising = _rising(context, j, lower, center)
    falling = _falling(context, j, center, higher)
    dtype = wanted_dtype(context, "f32", name="output_datatype", floats_only=False)
    return (cast(context, context.add("max", rising, falling), dtype),)


def _ends(context: OpContext, mels: Dim, length: Dim) -> int:
    """Where triangles begin, are highest and end, in bins: f64[mels + 2]."""
    rate, *edges = (
        reshape(context, cast(context, context.operand(position), "f64"), ())
        for position in (2, 3, 4)
    )
    low, high = (_mel(context, edge) for edge in edges)
    step = context.add("div", context.add("sub", high, low), size_scalar(context, mels + 2, "f64"))
    places = cast(context, iota(context, mels + 2), "f64")
    mel = context.add("add", context.add("mul", places, step), low)
    raised = context.add("exp", binary_scalar(context, "mul", mel, 1 / _MEL))
    hertz = binary_scalar(context, "mul", binary_scalar(context, "sub", raised, 1.0), _HERTZ)
    scaled = context.add("mul", hertz, size_scalar(context, length + 1, "f64"))
    return context.add("floor", context.add("div", scaled, rate))


def _mel(context: OpContext, hertz: int) -> int:
    share = binary_scalar(context, "add", binary_scalar(context, "div", hertz, _HERTZ), 1.0)
    return binary_scalar(context, "mul", context.add("log", share), _MEL)


def _rising(context: OpContext, j: int, lower: int, center: int) -> int:
    """From 0 at ``lower`` to 1 at ``center``; 1 there where both are one place; else 0."""
    width = context.add("sub", center, lower)
    is_point = binary_scalar(context, "equal", width, 0.0)
    line = context.add("div", context.add("sub", j, lower), _or_one(context, is_point, width))
    inside = context.add(
        "logical_and", context.add("less_equal", lower, j), context.add("less_equal", j, center)
    )
    one, zero = context.scalar("f64", 1.0), context.scalar("f64", 0.0)
    found = context.add("select", is_point, one, line)
    return context.add("select", inside, found, zero)


def _falling(context: OpContext, j: int, center: int, higher: int) -> int:
    """From 1 at ``center`` to 0 at ``higher``; else 0."""
    width = context.add("sub", higher, center)
    is_point = binary_scalar(context, "equal", width, 0.0)
    line = context.add("div", context.add("sub", higher, j), _or_one(context, is_point, width))
    inside = context.add(
        "logical_and", context.add("less_equal", center, j), context.add("less", j, higher)
    )
    return context.add("select", inside, line, context.scalar("f64", 0.0))


def _or_one(context: OpContext, is_point: int, width: int) -> int:
    return context.add("select", is_point, context.scalar("f64", 1.0), width)


OPS = (OnnxOp("MelWeightMatrix", _translate),)
