"""Channels of a convolution that become blocks of pixels: its kernel stores the image that they
become, with the same results."""

from __future__ import annotations

import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal

from ingot_compiler.ir.dims import Dim, dim_mul, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of

RELATIVE = 1e-5


def conv(builder: Builder, x: int, weights: Array, *bias: int) -> int:
    """A convolution that keeps the sizes."""
    count = weights.ndim - 2
    around = tuple(size // 2 for size in weights.shape[2:])
    return builder.op(
        "conv", x, builder.constant(weights), *bias, strides=(1,) * count, dilations=(1,) * count,
        pads_before=around, pads_after=around, groups=1,
    )  # fmt: skip


def shuffled(
    builder: Builder, value: int, shape: tuple[Dim, ...], block: tuple[int, ...], mode: str = "CRD"
) -> int:
    """Channels in blocks, as DepthToSpace has them; ``shape``: [N, C, sizes..] of the result's
    channels and the operand's sizes."""
    batch, channels, *sizes = shape
    count = len(sizes)
    split = (channels, *block) if mode == "CRD" else (*block, channels)
    own, first = (1, 2) if mode == "CRD" else (1 + count, 1)
    pairs = [part for axis in range(count) for part in (2 + count + axis, first + axis)]
    value = builder.op("reshape", value, shape=(batch, *split, *sizes))
    value = builder.op("transpose", value, permutation=(0, own, *pairs))
    whole = (dim_mul(size, times) for size, times in zip(sizes, block, strict=True))
    return builder.op("reshape", value, shape=(batch, channels, *whole))


def kinds(builder: Builder, outputs: list[int]) -> list[str]:
    """The kinds of the kernels, but for those that fill what is around images."""
    found = [item.group.kind for item in launches_of(compile_graph(builder.finish(outputs)).fused)]
    return [kind for kind in found if kind != "fill_halo"]


@pytest.mark.broad
@pytest.mark.parametrize("mode", ["CRD", "DCR"])
@pytest.mark.parametrize(
    ("channels", "own", "block", "taps"),
    [
        (32, 16, (2, 2), 3),  # by Winograd's algorithm
        (8, 16, (3, 2), 1),  # direct
        (16, 48, (2, 2), 3),
    ],
)
def test_blocks_of_an_image(
    channels: int, own: int, block: tuple[int, int], taps: int, mode: str
) -> None:
    """Bias and activation before the blocks are formed, a convolution of the larger image behind:
    nothing is copied between the two."""
    size, columns = (5, 7), own * block[0] * block[1]
    builder = Builder([f32(2, channels, *size)])
    bias = builder.constant(normal(2, columns))
    value = conv(builder, 0, normal(1, columns, channels, taps, taps), bias)
    value = shuffled(builder, builder.op("relu", value), (2, own, *size), block, mode)
    result = conv(builder, value, normal(3, 16, own, 3, 3))
    first, *others = kinds(builder, [result])
    assert first == "pointwise"  # the input, channels last
    assert len(others) == 3  # two convolutions, the output with rows inside
    check_graph(builder, [result], [normal(4, 2, channels, *size)], RELATIVE, RUNNABLE)


def test_blocks_along_one_axis() -> None:
    """A signal."""
    builder = Builder([f32(1, 16, 9)])
    value = conv(builder, 0, normal(1, 64, 16, 3))
    result = conv(builder, shuffled(builder, value, (1, 16, 9), (4,)), normal(2, 16, 16, 3))
    assert kinds(builder, [result]).count("pointwise") == 2
    check_graph(builder, [result], [normal(3, 1, 16, 9)], RELATIVE, RUNNABLE)


@pytest.mark.broad
def test_sizes_that_a_call_gives() -> None:
    """Images of any number and size."""
    n, h, w = map(symbol, "nhw")
    builder = Builder([TensorType("f32", (n, 32, h, w))])
    value = conv(builder, 0, normal(1, 64, 32, 3, 3))
    result = conv(builder, shuffled(builder, value, (n, 16, h, w), (2, 2)), normal(2, 16, 16, 3, 3))
    assert kinds(builder, [result]).count("pointwise") == 2
    for shape in ((1, 32, 5, 7), (3, 32, 4, 2), (1, 32, 1, 1)):
        check_graph(builder, [result], [normal(3, *shape)], RELATIVE, RUNNABLE)


def test_upsampling_by_a_transposed_convolution() -> None:
    """Its phases are blocks, too."""
    builder = Builder([f32(1, 32, 5, 6)])
    value = builder.op(
        "conv_transpose", 0, builder.constant(normal(1, 32, 16, 2, 2)), strides=(2, 2),
        dilations=(1, 1), pads_before=(0, 0), pads_after=(0, 0), output_padding=(0, 0), groups=1,
    )  # fmt: skip
    result = conv(builder, value, normal(2, 16, 16, 3, 3))
    assert kinds(builder, [result]).count("pointwise") == 2
    check_graph(builder, [result], [normal(3, 1, 32, 5, 6)], RELATIVE, RUNNABLE)


@pytest.mark.parametrize("returned", ["convolution", "channels in blocks"])
def test_what_somebody_else_reads_is_stored_as_it_is(returned: str) -> None:
    """The convolution's own result, or its channels before they are moved."""
    builder = Builder([f32(1, 8, 4, 4)])
    value = conv(builder, 0, normal(1, 64, 8, 3, 3))
    split = builder.op("reshape", value, shape=(1, 2, 2, 16, 4, 4))
    moved = builder.op("transpose", split, permutation=(0, 3, 4, 1, 5, 2))
    whole = builder.op("reshape", moved, shape=(1, 16, 8, 8))
    outputs = [conv(builder, whole, normal(2, 16, 16, 3, 3))]
    outputs.append(value if returned == "convolution" else split)
    check_graph(builder, outputs, [normal(3, 1, 8, 4, 4)], RELATIVE, RUNNABLE)


def test_few_channels_are_copied() -> None:
    """A vector of results would have to be taken apart."""
    builder = Builder([f32(1, 8, 4, 4)])
    value = shuffled(builder, conv(builder, 0, normal(1, 12, 8, 3, 3)), (1, 3, 4, 4), (2, 2))
    check_graph(builder, [value], [normal(3, 1, 8, 4, 4)], RELATIVE, RUNNABLE)
