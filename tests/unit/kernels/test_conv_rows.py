"""Convolutions of row-major images into few channels, by rows of pixels: compiled code against the
interpreter, and when they are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, normal

from ingot_compiler.ir.dims import Dim, dim_mul, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of

RELATIVE = 1e-5
Pads = tuple[tuple[int, ...], tuple[int, ...]]


def convolution(
    builder: Builder,
    channels: int,
    to: int,
    kernel: tuple[int, ...],
    pads: Pads = ((), ()),
    strides: tuple[int, ...] = (),
    dilations: tuple[int, ...] = (),
    groups: int = 1,
) -> int:
    """A convolution of operand 0 with a bias."""
    rank = len(kernel)
    weights = builder.constant(normal(1, to, channels // groups, *kernel) / np.float32(channels))
    return builder.op(
        "conv", 0, weights, builder.constant(normal(2, to)),
        strides=strides or (1,) * rank, dilations=dilations or (1,) * rank, groups=groups,
        pads_before=pads[0] or (0,) * rank, pads_after=pads[1] or (0,) * rank,
    )  # fmt: skip


def kinds(builder: Builder, output: int) -> list[str]:
    """The kinds of the kernels that a graph becomes."""
    return [
        launch.group.kind for launch in launches_of(compile_graph(builder.finish([output])).fused)
    ]


Attributes = dict[str, Any]
GEOMETRIES: dict[str, tuple[tuple[int, ...], int, tuple[int, ...], Pads, Attributes]] = {
    "one channel of a signal": ((1, 20, 50), 1, (5,), ((2,), (2,)), {}),
    "several": ((2, 30, 70), 3, (7,), ((1,), (4,)), {"dilations": (2,)}),
    "of one": ((1, 1, 90), 16, (15,), ((7,), (7,)), {}),
    "of one pixel": ((1, 40, 33), 2, (1,), ((), ()), {}),
    "an image": ((1, 24, 13, 37), 1, (3, 3), ((1, 1), (1, 1)), {}),
    "images of few channels": ((2, 3, 9, 40), 5, (3, 5), ((0, 2), (1, 2)), {}),
    "long steps between rows": ((1, 18, 11, 20), 2, (3, 3), ((), ()), {"strides": (2, 1)}),
    "taps apart": ((1, 18, 12, 21), 2, (3, 3), ((2, 3), (2, 3)), {"dilations": (2, 3)}),
    "a volume": ((1, 8, 4, 5, 19), 1, (3, 1, 3), ((1, 0, 1), (1, 0, 1)), {}),
    "groups of a pixel": ((2, 24, 7, 9), 12, (1, 1), ((), ()), {"groups": 4}),
    "groups of a volume": ((1, 8, 3, 5, 7), 8, (1, 1, 1), ((), ()), {"groups": 2}),
    "joined lines": ((1, 18, 9, 20), 2, (3, 1), ((1, 0), (1, 0)), {}),
    "steps over joined lines": (
        (1, 8, 9, 20),
        4,
        (1, 1),
        ((), ()),
        {"groups": 2, "strides": (2, 1)},
    ),
    "many products": ((1, 130, 6, 50), 2, (3, 3), ((1, 1), (1, 1)), {}),
}


@pytest.mark.sweep(36)
@pytest.mark.parametrize("case", GEOMETRIES)
@pytest.mark.parametrize("is_open", [False, True])
def test_rows_of_pixels(case: str, *, is_open: bool) -> None:
    """Every geometry, at every level of this machine, of known sizes and of open ones."""
    shape, to, kernel, pads, more = GEOMETRIES[case]
    sizes: tuple[Dim, ...] = shape
    if is_open:
        sizes = (*shape[:2], *(symbol(f"n{axis}") for axis in range(len(shape) - 2)))
    builder = Builder([TensorType("f32", sizes)])
    result = builder.op("relu", convolution(builder, shape[1], to, kernel, pads, **more))
    assert "conv_rows" in kinds(builder, result)
    check_graph(builder, [result], [normal(0, *shape)], RELATIVE, RUNNABLE)


def test_rows_of_f64() -> None:
    """Half as many lanes."""
    builder = Builder([TensorType("f64", (1, 9, 30))])
    weights = builder.constant(normal(1, 2, 9, 3).astype(np.float64))
    result = builder.op(
        "conv", 0, weights, strides=(1,), dilations=(1,), groups=1, pads_before=(1,), pads_after=(1,)
    )  # fmt: skip
    assert "conv_rows" in kinds(builder, result)
    check_graph(builder, [result], [normal(0, 1, 9, 30).astype(np.float64)], 1e-12, RUNNABLE)


def chosen(channels: int, to: int, width: int = 40, strides: tuple[int, ...] = (1, 1)) -> list[str]:
    """Kinds for images of 3x3 taps."""
    builder = Builder([TensorType("f32", (1, channels, 6, width))])
    return kinds(builder, convolution(builder, channels, to, (3, 3), strides=strides))


def test_when_rows_are_chosen() -> None:
    """Few channels, pixels beside each other, rows that are no shorter than half the lanes."""
    assert "conv_rows" in chosen(48, 2)
    assert "conv_rows" not in chosen(48, 64)
    assert "conv_rows" in chosen(3, 64)
    assert "conv_rows" not in chosen(48, 2, strides=(1, 2))
    assert "conv_rows" not in chosen(48, 2, width=5)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("to", [1, 5])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("block", [(2, 2), (3, 1)])
def test_channels_that_become_blocks_of_pixels(
    block: tuple[int, int], to: int, *, is_open: bool
) -> None:
    """Few of them are rows of pixels before, too; an output whose channels lie together is not."""
    high, wide = (symbol("h"), symbol("w")) if is_open else (6, 40)
    builder = Builder([TensorType("f32", (2, 64, high, wide))])
    (down, along), channels = block, to * block[0] * block[1]
    found = convolution(builder, 64, channels, (1, 1))
    apart = builder.op("reshape", found, shape=(2, to, down, along, high, wide))
    moved = builder.op("transpose", apart, permutation=(0, 1, 4, 2, 5, 3))
    result = builder.op("reshape", moved, shape=(2, to, dim_mul(high, down), dim_mul(wide, along)))
    assert "conv_rows" in kinds(builder, result)
    check_graph(builder, [result], [normal(0, 2, 64, 6, 40)], RELATIVE, RUNNABLE)
    last = builder.op("transpose", found, permutation=(0, 2, 3, 1))
    assert "conv_rows" not in kinds(builder, last)


@pytest.mark.parametrize(("first", "second"), [(40, 2), (2, 40)])
def test_images_whose_channels_lie_together_stay_so(first: int, second: int) -> None:
    """What another convolution gives, and what another one reads."""
    builder = Builder([TensorType("f32", (1, 30, 6, 40))])
    inner = convolution(builder, 30, first, (3, 3))
    weights = builder.constant(normal(3, second, first, 1, 1))
    outer = builder.op(
        "conv", inner, weights, strides=(1, 1), dilations=(1, 1), groups=1, pads_before=(0, 0),
        pads_after=(0, 0),
    )  # fmt: skip
    assert "conv_rows" not in kinds(builder, outer)
