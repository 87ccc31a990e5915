"""Convolutions to few channels, whose summands are in lanes: compiled code against the interpreter,
their error against float64, numbers that are not finite, when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import (
    BEST,
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.precision import BF16, F32, STRICT
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.targets.target import Target

KIND = "conv_few_channels"
RELATIVE = 1e-5


def channels_last(kind: TensorType) -> TensorType:
    """How an image of channels that lie together is given: rows of pixels would be computed in
    another way."""
    batch, channels, *sizes = kind.shape
    return TensorType(kind.dtype, (batch, *sizes, channels))


def given(x: Array) -> Array:
    """The same of an array."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def image(builder: Builder, rank: int) -> int:
    """The first input with its channels in front."""
    return builder.op("transpose", 0, permutation=(0, rank - 1, *range(1, rank - 1)))


def conv(
    builder: Builder,
    weights: Array,
    *bias: int,
    stride: int = 1,
    dilation: int = 1,
    x: int | None = None,
) -> int:
    """A convolution of the first input, with half a kernel of zeros around it."""
    x = image(builder, weights.ndim) if x is None else x
    count = weights.ndim - 2
    around = tuple(dilation * (size // 2) for size in weights.shape[2:])
    return builder.op(
        "conv", x, builder.constant(weights), *bias, strides=(stride,) * count,
        dilations=(dilation,) * count, pads_before=around, pads_after=around, groups=1,
    )  # fmt: skip


def kinds(
    builder: Builder, outputs: list[int], target: Target = BEST, precision: str = F32
) -> set[str]:
    """The kinds of the kernels that a graph becomes."""
    compiled = compile_graph(builder.finish(outputs), target, precision=precision)
    return {launch.group.kind for launch in launches_of(compiled.fused)}


@pytest.mark.sweep(60)
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(
    ("channels", "size", "taps", "stride", "dilation"),
    [
        (16, (5, 16), (3, 3), 1, 1),
        (32, (4, 67), (3, 5), 1, 1),  # whole units and one that is not
        (128, (3, 9), (1, 1), 1, 1),
        (16, (9, 11), (3, 3), 2, 1),
        (16, (7, 8), (3, 3), 1, 2),
    ],
)
def test_results_are_those_of_the_interpreter(
    channels: int,
    size: tuple[int, int],
    taps: tuple[int, int],
    stride: int,
    dilation: int,
    columns: int,
) -> None:
    """With bias and activation, on every level."""
    builder = Builder([channels_last(f32(2, channels, *size))])
    bias = builder.constant(normal(2, columns))
    value = conv(
        builder, normal(1, columns, channels, *taps), bias, stride=stride, dilation=dilation
    )
    result = builder.op("relu", value)
    if BEST.f32_lanes >= 8:
        assert KIND in kinds(builder, [result])
    check_graph(builder, [result], [given(normal(3, 2, channels, *size))], RELATIVE, RUNNABLE)


def test_the_image_itself_is_added() -> None:
    """What stands behind the sums reads whole vectors of pixels."""
    builder = Builder([channels_last(f32(1, 16, 6, 21)), f32(1, 3, 6, 21)])
    result = builder.op("add", conv(builder, normal(1, 3, 16, 3, 3)), 1)
    inputs = [given(normal(2, 1, 16, 6, 21)), normal(3, 1, 3, 6, 21)]
    check_graph(builder, [result], inputs, RELATIVE, RUNNABLE)


def test_another_convolution_reads_the_result() -> None:
    """It lies channels last then."""
    builder = Builder([channels_last(f32(1, 16, 6, 21))])
    few = conv(builder, normal(1, 3, 16, 3, 3))
    result = conv(builder, normal(2, 16, 3, 3, 3), x=few)
    check_graph(builder, [result], [given(normal(3, 1, 16, 6, 21))], RELATIVE, RUNNABLE)


def test_along_one_axis_and_three() -> None:
    """Signals and volumes."""
    for shape, taps in (((2, 64, 37), (5,)), ((1, 16, 3, 4, 19), (3, 3, 3))):
        builder = Builder([channels_last(f32(*shape))])
        result = conv(builder, normal(1, 2, shape[1], *taps))
        assert BEST.f32_lanes < 8 or KIND in kinds(builder, [result])
        check_graph(builder, [result], [given(normal(2, *shape))], RELATIVE, RUNNABLE)


def test_sizes_that_a_call_gives() -> None:
    """Images of any number and size: pixels beyond the end are neither read nor stored."""
    builder = Builder(
        [channels_last(TensorType("f32", (symbol("n"), 16, symbol("h"), symbol("w"))))]
    )
    result = conv(builder, normal(1, 3, 16, 3, 3))
    for shape in ((1, 16, 5, 7), (3, 16, 8, 2), (1, 16, 1, 1), (1, 16, 2, 81)):
        check_graph(builder, [result], [given(normal(2, *shape))], RELATIVE, RUNNABLE)


def test_error_is_at_most_that_of_one_chain() -> None:
    """The contract of ``f32``."""
    x, weights = normal(5, 1, 64, 12, 12), normal(6, 3, 64, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    exact, chain = np.zeros((1, 3, 12, 12)), np.zeros((1, 3, 12, 12), np.float32)
    for i, j, c in np.ndindex(3, 3, 64):
        pixels = windows[:, c, None, :, :, i, j].astype(np.float64)
        products = pixels * weights[:, c, i, j].astype(np.float64)[None, :, None, None]
        exact += products
        chain = (chain + products).astype(np.float32)  # rounded once, as a multiply-add does
    builder = Builder([channels_last(f32(*x.shape))])
    graph = builder.finish([conv(builder, weights)])
    (found,) = run_compiled(compile_graph(graph), graph, [given(x)], builder.read)
    errors = [float(np.sqrt(np.mean((each - exact) ** 2))) for each in (found, chain)]
    assert errors[0] <= errors[1]


def test_numbers_that_are_not_finite() -> None:
    """They reach the pixels that read them, and no others."""
    x = normal(1, 1, 16, 8, 24)
    x[0, 3, 2, 5], x[0, 7, 6, 20] = np.inf, np.nan
    builder = Builder([channels_last(f32(*x.shape))])
    check_graph(builder, [conv(builder, normal(2, 1, 16, 3, 3))], [given(x)], RELATIVE, RUNNABLE)


@pytest.mark.parametrize(
    ("channels", "columns", "taps", "precision"),
    [
        (24, 3, 3, F32),  # a tap is no whole vectors
        (16, 3, 1, F32),  # adding the lanes takes as long as the products
        (16, 7, 3, F32),  # columns fill the lanes
        (16, 3, 3, STRICT),  # sums have one order
        (16, 3, 3, BF16),
    ],
)
def test_others_have_columns_in_lanes(
    channels: int, columns: int, taps: int, precision: str
) -> None:
    """Where that is faster, or where something else is asked for."""
    builder = Builder([channels_last(f32(1, channels, 8, 8))])
    result = conv(builder, normal(1, columns, channels, taps, taps))
    assert KIND not in kinds(builder, [result], precision=precision)
