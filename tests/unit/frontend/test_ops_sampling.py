"""Samples at computed places, transforms and folds, from ONNX to machine code, beside ONNX's
reference."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import (
    check_model,
    make_model,
    node,
    reference,
    run_all_ways,
    tensor,
)

import ingot
import ingot_runtime

I64 = TensorProto.INT64
PADDINGS = ("zeros", "border", "reflection")
# ONNX's reference moves a cubic sample to the border, PyTorch and ONNX Runtime do not.
SAMPLERS = [
    (mode, padding)
    for mode in ("nearest", "linear", "cubic")
    for padding in PADDINGS
    if (mode, padding) != ("cubic", "border")
]


def image(*shape: int) -> Array:
    """An image of random numbers."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("mode", "padding"), SAMPLERS)
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.sweep(8)
def test_grid_sample(tmp_path: Path, mode: str, padding: str, align: int) -> None:
    """Every mode and padding, with places far outside of the image; cubic in a border is below."""
    x, grid = (
        image(2, 3, 5, 6),
        (np.random.default_rng(2).random((2, 4, 3, 2)) * 5 - 2.5).astype(np.float32),
    )
    nodes = [node("GridSample", "x g", "y", mode=mode, padding_mode=padding, align_corners=align)]
    model = make_model(nodes, [tensor("x", x.shape), tensor("g", grid.shape)], [tensor("y", None)])
    check_model(model, [{"x": x, "g": grid}], tmp_path, 1e-4, floor=1e-5)


@pytest.mark.broad
@pytest.mark.parametrize("align", [0, 1])
def test_cubic_samples_beyond_a_border(tmp_path: Path, align: int) -> None:
    """They are what the reference samples of the image continued by its edges, as in PyTorch."""
    x, more = image(1, 2, 5, 6), 16
    spread = np.random.default_rng(2).random((1, 4, 9, 2)) * 5 - 2.5
    sizes = np.array([6, 5])  # of the coordinates, last axis first
    pixel = (spread + 1) / 2 * (sizes - 1) if align else ((spread + 1) * sizes - 1) / 2
    wide = (pixel + more) * 2 / (sizes + 2 * more - 1) - 1
    continued = np.pad(x, ((0, 0), (0, 0), (more, more), (more, more)), mode="edge")
    inside = node("GridSample", "x g", "y", mode="cubic", align_corners=1)
    feed = {"x": continued, "g": wide.astype(np.float32)}
    types = [tensor(name, array.shape) for name, array in feed.items()]
    expected = reference(make_model([inside], types, [tensor("y", None)]), feed)["y"]

    nodes = [
        node("GridSample", "x g", "y", mode="cubic", padding_mode="border", align_corners=align)
    ]
    grid = spread.astype(np.float32)
    model = make_model(nodes, [tensor("x", x.shape), tensor("g", grid.shape)], [tensor("y", None)])
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    for result in run_all_ways(path, [{"x": x, "g": grid}]):
        np.testing.assert_allclose(result["y"], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("align", [0, 1])
def test_affine_grid(tmp_path: Path, align: int) -> None:
    """The grid of an affine map, its size an input."""
    theta = image(2, 2, 3)
    nodes = [node("AffineGrid", "t n", "y", align_corners=align)]
    model = make_model(
        nodes, [tensor("t", theta.shape), tensor("n", [4], I64)], [tensor("y", None)]
    )
    check_model(
        model,
        [{"t": theta, "n": np.array(size)} for size in ((2, 3, 4, 5), (2, 1, 1, 7))],
        tmp_path,
        floor=1e-5,
    )


@pytest.mark.broad
@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(tmp_path: Path, mode: str, ratio: int) -> None:
    """Cells of regions, some of which leave the image; of a number of samples that is the same for all,
    or that each region decides, one of which has none."""
    x = image(2, 3, 9, 8)
    regions = [[0, 0, 4, 5], [2, 3, 9, 9], [-3, -2, 3, 2], [5, 5, 4.5, 5.25], [4, 6, 2, 1]]
    tables = {"r": np.array(regions, np.float32), "b": np.array([0, 1, 1, 0, 1])}
    sizes = {"output_height": 3, "output_width": 2}
    nodes = [node("RoiAlign", "x r b", "y", mode=mode, sampling_ratio=ratio, **sizes)]
    check_model(
        make_model(nodes, [tensor("x", x.shape)], [tensor("y", None)], tables),
        [{"x": x}],
        tmp_path,
        floor=1e-5,
    )


@pytest.mark.broad
def test_roi_align_of_open_regions(tmp_path: Path) -> None:
    """Regions are an input, of which there may be none; corners lie on pixels."""
    x = image(2, 3, 9, 8)
    mode = "output_half_pixel"
    nodes = [node("RoiAlign", "x r b", "y", output_width=2, coordinate_transformation_mode=mode)]
    inputs = [tensor("x", x.shape), tensor("r", ["n", 4]), tensor("b", ["n"], I64)]
    model = make_model(nodes, inputs, [tensor("y", None)])
    calls = [
        {
            "x": x,
            "r": np.array(regions, np.float32).reshape(-1, 4),
            "b": np.zeros(len(regions), np.int64),
        }
        for regions in ([], [[1, 1, 1, 1]], [[0, 0, 7, 7], [2, 2, 3, 8]])
    ]
    check_model(model, calls, tmp_path, floor=1e-5)


@pytest.mark.sweep(18)
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("length", [5, 8, 12])
def test_fourier_transforms(tmp_path: Path, onesided: int, length: int) -> None:
    """A transform along an axis, shorter and longer than it; forth and back gives the signal."""
    x = image(2, 8, 3, 1)
    nodes = [node("DFT", "x n a", "y", onesided=onesided)]
    outputs = [tensor("y", None)]
    if length == 8:
        nodes.append(node("DFT", "y n a", "z", inverse=1, onesided=onesided))
        outputs.append(tensor("z", None))
    model = make_model(
        nodes, [tensor("x", x.shape)], outputs, {"n": np.array(length), "a": np.array(1)}
    )
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)


FOLDS: dict[str, tuple[dict[str, list[int]], list[int], list[int]]] = {
    "dense": ({}, [5, 4], [2, 2]),
    "padded": ({"pads": [1, 0, 0, 1]}, [5, 4], [2, 2]),
    "pads that cut": ({"pads": [-1, 0, 1, -1]}, [5, 6], [2, 2]),
    "dilated": ({"dilations": [2, 3], "pads": [0, 1, 1, 1]}, [5, 4], [2, 2]),
    "strided": ({"strides": [2, 1]}, [5, 4], [2, 2]),
    "side by side": ({"strides": [4, 3]}, [8, 9], [4, 3]),
    "apart": ({"strides": [5, 3], "pads": [1, 0, 0, 2]}, [9, 8], [2, 2]),
    "overlapping by a part": ({"strides": [2, 4], "pads": [1, 2, 1, 2]}, [9, 15], [5, 6]),
    "strided and dilated": ({"strides": [2, 3], "dilations": [3, 2]}, [11, 9], [3, 2]),
    "a long block": ({"strides": [4, 2]}, [60, 41], [40, 15]),
    "one axis": ({"strides": [3]}, [20], [7]),
    "more than one kernel adds": ({}, [12, 13], [9, 10]),
}


def _blocks(attributes: dict[str, list[int]], image: list[int], block: list[int]) -> int:
    """How many blocks there are."""
    count = len(image)
    pads = attributes.get("pads", [0] * 2 * count)
    found = 1
    for axis, size in enumerate(image):
        stride = attributes.get("strides", [1] * count)[axis]
        reach = attributes.get("dilations", [1] * count)[axis] * (block[axis] - 1)
        found *= (size + pads[axis] + pads[count + axis] - reach - 1) // stride + 1
    return found


@pytest.mark.sweep(22)
@pytest.mark.parametrize("case", FOLDS)
def test_folds(tmp_path: Path, case: str) -> None:
    """Overlapping blocks are added into their image."""
    attributes, size, block = FOLDS[case]
    x = image(2, 3 * math.prod(block), _blocks(attributes, size, block))
    tables = {"n": np.array(size), "k": np.array(block)}
    nodes = [node("Col2Im", "x n k", "y", **attributes)]
    model = make_model(nodes, [tensor("x", x.shape)], [tensor("y", None)], tables)
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)


@pytest.mark.parametrize("strides", [[1, 1], [1, 2]])
def test_infinity_stays_where_it_is_folded_to(tmp_path: Path, strides: list[int]) -> None:
    """Nothing is multiplied: 0 times infinity would be no number, all around."""
    x = image(1, 4, 9)
    x[0, 1, 4] = np.inf
    tables = {"n": np.array([4, 2 + 2 * strides[1]]), "k": np.array([2, 2])}
    fold = node("Col2Im", "x n k", "y", strides=strides)
    model = make_model([fold], [tensor("x", x.shape)], [tensor("y", None)], tables)
    ingot.compile(model).save(tmp_path / "m.ingot")
    y = ingot_runtime.load(tmp_path / "m.ingot").run({"x": x})["y"]
    assert np.argwhere(~np.isfinite(y)).tolist() == [[0, 0, 1, 1 + strides[1]]]
