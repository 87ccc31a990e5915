"""Depthwise convolutions on row-major planes: compiled code against the interpreter, and when they
are chosen."""

from __future__ import annotations

import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import (
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.tiles import MASKED_LOAD_BITS_MIN
from ingot_compiler.lowering.groups.fused import launches_of

RELATIVE = 1e-5  # chains of at most 115 multiply-adds


def depthwise(
    builder: Builder,
    x: int,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1),
    dilations: tuple[int, ...] = (1, 1),
    pads: tuple[tuple[int, ...], tuple[int, ...]] = ((1, 1), (1, 1)),
    channels: int = 3,
) -> int:
    """A depthwise convolution with a bias."""
    operands = (
        x,
        builder.constant(normal(1, channels, 1, *kernel)),
        builder.constant(normal(2, channels)),
    )
    return builder.op(
        "conv",
        *operands,
        strides=strides,
        pads_before=pads[0],
        pads_after=pads[1],
        dilations=dilations,
        groups=channels,
    )


def kinds(builder: Builder, outputs: list[int]) -> list[str]:
    """The kinds of the kernels that a graph becomes."""
    return [
        launch.group.kind for launch in launches_of(compile_graph(builder.finish(outputs)).fused)
    ]


GEOMETRIES = [
    ((14, 14), (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))),
    ((23, 17), (3, 3), (2, 2), (1, 1), ((1, 1), (1, 1))),
    ((40, 56), (7, 7), (1, 1), (1, 1), ((3, 3), (3, 3))),
    ((9, 70), (5, 3), (2, 1), (2, 2), ((0, 1), (2, 3))),
    ((3, 3), (7, 7), (1, 1), (1, 1), ((3, 3), (3, 3))),
    ((33, 64), (7, 7), (2, 2), (1, 1), ((3, 3), (3, 3))),
    ((5, 100), (1, 1), (1, 2), (1, 1), ((0, 0), (0, 0))),
    ((31, 31), (5, 5), (3, 2), (1, 1), ((4, 4), (4, 4))),
    ((50,), (5,), (2,), (1,), ((2,), (2,))),
    ((33,), (3,), (1,), (2,), ((2,), (0,))),
    ((37, 20), (31, 3), (1, 1), (1, 1), ((15, 1), (15, 1))),
    ((40, 19), (23, 5), (2, 1), (1, 2), ((11, 4), (11, 4))),
]


@pytest.mark.parametrize(("size", "kernel", "strides", "dilations", "pads"), GEOMETRIES)
@pytest.mark.sweep(60)
def test_planes(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    """Edges on all sides, strides, dilations and unequal pads, one or two spatial axes, on every
    level."""
    builder = Builder([f32(2, 3, *size)])
    result = builder.op("relu", depthwise(builder, 0, kernel, strides, dilations, pads))
    assert kinds(builder, [result]) == ["depthwise_plane"]
    check_graph(builder, [result], [normal(0, 2, 3, *size)], RELATIVE, RUNNABLE)


OPEN = [(True, True), (True, False), (False, True)]
MASKING = [target for target in RUNNABLE if target.vector_bits >= MASKED_LOAD_BITS_MIN]


@pytest.mark.parametrize("is_open", OPEN)
@pytest.mark.parametrize(("size", "kernel", "strides", "dilations", "pads"), GEOMETRIES)
@pytest.mark.sweep(60)
def test_planes_of_open_sizes(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[tuple[int, ...], tuple[int, ...]],
    is_open: tuple[bool, bool],
) -> None:
    """Edges are found at run time; the bits are those of known sizes."""
    x = normal(0, 2, 3, *size)
    sizes = [
        symbol(f"s{axis}") if opened else size[axis]
        for axis, opened in enumerate(is_open[: len(size)])
    ]
    for target in MASKING:
        results: list[Array] = []
        for given in (size, sizes):
            builder = Builder([TensorType("f32", (2, 3, *given))])
            result = builder.op("relu", depthwise(builder, 0, kernel, strides, dilations, pads))
            assert kinds(builder, [result]) == ["depthwise_plane"]
            graph = builder.finish([result])
            results += run_compiled(compile_graph(graph, target), graph, [x], builder.read)
        assert results[0].tobytes() == results[1].tobytes()


def test_planes_are_for_images_that_arrive_and_leave_row_major() -> None:
    """A second convolution, or a transpose to channels-last behind the first, keeps channels in
    lanes."""
    builder = Builder([f32(1, 3, 9, 9)])
    first = depthwise(builder, 0, (3, 3))
    assert "depthwise_plane" in kinds(builder, [first])
    second = depthwise(builder, builder.op("relu", first), (3, 3))
    assert "depthwise_plane" not in kinds(builder, [second])
    builder = Builder([f32(1, 3, 9, 9)])
    turned = builder.op("transpose", depthwise(builder, 0, (3, 3)), permutation=(0, 2, 3, 1))
    assert "depthwise_plane" not in kinds(builder, [turned])
