"""Convolutions of as many images, or of images as large, as a call gives.

In: sizes that are open. Out: pass or fail; the oracle is ONNX's reference. Not done here: large
dilations (``test_taps_inside``), depthwise convolutions.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, numpy_helper
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor
from tests.harness.lowering_harness import Builder, compile_graph, normal

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.loops.program import Contraction, LoopProgram


def _model(shape: list[str | int], to: int, kernel: int, stride: int) -> ModelProto:
    channels = shape[1]
    assert isinstance(channels, int)
    model = make_model(
        [
            node("Conv", "x w b", "c", strides=[stride] * 2, pads=[kernel // 2] * 4),
            node("Relu", "c", "y"),
        ],
        [tensor("x", shape)],
        [tensor("y", None)],
    )
    weights = {"w": normal(1, to, channels, kernel, kernel), "b": normal(2, to)}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    return model


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("channels", "to", "kernel"), [(3, 16, 3), (1, 24, 5), (20, 33, 3), (32, 7, 3)]
)
@pytest.mark.sweep(12)
def test_images_of_any_size(
    channels: int, to: int, kernel: int, stride: int, tmp_path: Path
) -> None:
    """Of one pixel, of less than a tile in a row, of whole tiles and more."""
    model = _model(["n", channels, "h", "w"], to, kernel, stride)
    sizes = ((1, 1, 1), (1, 5, 9), (2, 28, 28), (1, 7, 61), (0, 5, 5))
    feeds = [{"x": normal(0, n, channels, *size)} for n, *size in sizes]
    check_model(model, feeds, tmp_path)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("width", [28, 56, 27, 20])
def test_any_number_of_images(width: int, tmp_path: Path) -> None:
    """Tiles that divide the rows of an image, and others."""
    feeds = [{"x": normal(0, n, 3, 9, width)} for n in (1, 3, 0)]
    check_model(_model(["n", 3, 9, width], 32, 3, 2), feeds, tmp_path)


def _contraction(shape: tuple[Dim, ...], stride: int) -> Contraction:
    builder = Builder([TensorType("f32", shape)])
    channels = shape[1]
    assert isinstance(channels, int)
    w = builder.constant(normal(1, 16, channels, 3, 3))
    pads = {"pads_before": (1, 1), "pads_after": (1, 1)}
    y = builder.op("conv", 0, w, strides=(stride,) * 2, dilations=(1, 1), groups=1, **pads)
    turned = builder.op("transpose", y, permutation=(0, 2, 3, 1))  # channels are to lie together
    compiled = compile_graph(builder.finish([turned]))
    return next(found for program in compiled.programs for found in _contractions(program))


def _contractions(program: LoopProgram) -> list[Contraction]:
    return [statement for statement in program.body if isinstance(statement, Contraction)]


def test_strides_skip_no_taps() -> None:
    """An image that is as many times as large as its result has few taps outside."""
    open_image = (1, 32, symbol("h"), symbol("w"))
    assert all(isinstance(extent, int) for _, extent in _contraction(open_image, 2).taps)


@pytest.mark.parametrize("width", [28, 20, 32])
def test_tiles_of_short_sums_divide_rows(width: int) -> None:
    """Where finding a pixel takes as long as what is computed there."""
    tile = _contraction((symbol("n"), 3, 9, width), 1).tile
    assert tile.rows > 1
    assert width % tile.rows == 0
