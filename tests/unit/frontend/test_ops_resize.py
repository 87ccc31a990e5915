"""Resize and Upsample, from ONNX to machine code, beside ONNX's reference and the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, run_all_ways, tensor
from tests.harness.lowering_harness import assert_close

import ingot

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
)


def image(*shape: int) -> Array:
    """An image of random numbers."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_known_sizes(tmp_path: Path, mode: str, coordinates: str) -> None:
    """Every mode with every coordinate rule agrees with ONNX's reference, larger and smaller."""
    x = image(1, 3, 6, 7)
    nodes = [
        node("Resize", "x - - up", "y", mode=mode, coordinate_transformation_mode=coordinates),
        node("Resize", "x - - down", "z", mode=mode, coordinate_transformation_mode=coordinates),
    ]
    sizes = {"up": np.array([1, 3, 9, 15]), "down": np.array([1, 3, 4, 5])}
    model = make_model(nodes, [tensor("x", x.shape)], [tensor("y", None), tensor("z", None)], sizes)
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_of_integers(tmp_path: Path, nearest: str) -> None:
    """Every rounding picks the element that ONNX's reference picks, whatever the element type."""
    x = np.arange(60, dtype=np.uint8).reshape(1, 1, 6, 10)
    scales = np.array([1, 1, 1.75, 0.625], np.float32)
    nodes = [node("Resize", "x - scales", "y", nearest_mode=nearest)]
    model = make_model(nodes, [tensor("x", x.shape, 2)], [tensor("y", None, 2)], {"scales": scales})
    check_model(model, [{"x": x}], tmp_path)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_halves_are_rounded_once(tmp_path: Path, mode: str) -> None:
    """Their results have the bits of the same numbers in f32, rounded at the end."""
    x = image(1, 3, 17, 19).astype(np.float16)
    found: list[Array] = []
    for name, values, kind in (("halves", x, 10), ("singles", x.astype(np.float32), 1)):
        sizes = {"sizes": np.array([1, 3, 34, 41])}
        nodes = [node("Resize", "x - - sizes", "y", mode=mode)]
        model = make_model(nodes, [tensor("x", x.shape, kind)], [tensor("y", None, kind)], sizes)
        path = tmp_path / f"{name}.ingot"
        ingot.compile(model).save(path)
        found.append(run_all_ways(path, [{"x": values}])[0]["y"])
    np.testing.assert_array_equal(found[0], found[1].astype(np.float16))


@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "antialias": 1},
        {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
        {"mode": "linear", "keep_aspect_ratio_policy": "not_larger", "axes": [2, 3]},
    ],
)
def test_filters_and_policies(tmp_path: Path, attributes: dict[str, Any]) -> None:
    """Wide filters, weights without the outside, and one ratio for all axes agree with ONNX's
    reference."""
    x = image(1, 2, 12, 9)
    sizes = np.array([5, 4] if "axes" in attributes else [1, 2, 5, 4])
    model = make_model(
        [node("Resize", "x - - sizes", "y", **attributes)],
        [tensor("x", x.shape)],
        [tensor("y", None)],
        {"sizes": sizes},
    )
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)


@pytest.mark.parametrize(("wide", "new"), [(150, 40), (67, 160), (200, 66), (90, 20), (33, 33 * 7)])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners"])
@pytest.mark.sweep(60)
def test_rows_of_several_vectors(tmp_path: Path, wide: int, new: int, coordinates: str) -> None:
    """Neighbours come from one vector, from up to four, and from more."""
    x = image(1, 1, 5, wide)
    modes = {"y": "linear", "z": "cubic", "v": "nearest"}
    nodes = [
        node("Resize", "x - - s", name, mode=mode, coordinate_transformation_mode=coordinates)
        for name, mode in modes.items()
    ]
    sizes = {"s": np.array([1, 1, 4, new])}
    outputs = [tensor(name, None) for name in modes]
    model = make_model(nodes, [tensor("x", x.shape)], outputs, sizes)
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)


def test_scales_of_a_run(tmp_path: Path) -> None:
    """Scales that are an input decide the size of the result at every call."""
    x = image(1, 2, 5, 4)
    nodes = [node("Resize", "x - scales", "y", mode="linear")]
    model = make_model(nodes, [tensor("x", x.shape), tensor("scales", [4])], [tensor("y", None)])
    feeds = [
        {"x": x, "scales": np.array([1, 1, *pair], np.float32)}
        for pair in ((2, 3), (0.5, 1), (1.3, 2.7))
    ]
    results = check_model(model, feeds, tmp_path, 1e-5, floor=1e-5)
    assert [result["y"].shape[2:] for result in results] == [(10, 12), (2, 4), (6, 10)]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_scales_of_a_run_for_all_axes(tmp_path: Path, mode: str, order: tuple[int, ...]) -> None:
    """Of four axes, in rows or in pixels, they give what the same scales in a model give."""
    x, scales = image(2, 5, 6, 7), np.array([1, 2, 1.5, 0.6], np.float32)
    models = list[ModelProto]()
    for stored in ({}, {"s": scales}):
        nodes = [
            node("Transpose", "x", "t", perm=order),
            node("Resize", "t - s", "y", mode=mode),
        ]
        inputs = [tensor("x", x.shape), *([] if stored else [tensor("s", [4])])]
        models.append(make_model(nodes, inputs, [tensor("y", None)], stored))
    of_run, known = models
    ingot.compile(known).save(tmp_path / "known")
    (right,) = run_all_ways(tmp_path / "known", [{"x": x}])
    ingot.compile(of_run).save(tmp_path / "run")
    (found,) = run_all_ways(tmp_path / "run", [{"x": x, "s": scales}])
    assert_close(found["y"], right["y"], 1e-5, 1e-5)


def test_crop(tmp_path: Path) -> None:
    """A region of interest is cut out; what lies outside of the image has the extrapolation
    value."""
    x = image(1, 1, 6, 6)
    tables = {
        "roi": np.array([0, 0, 0.2, 0.3, 1, 1, 1.3, 0.9], np.float32),
        "sizes": np.array([1, 1, 5, 4]),
    }
    nodes = [
        node("Resize", "x roi - sizes", "y", mode="linear", coordinate_transformation_mode="tf_crop_and_resize",
             extrapolation_value=9.0)
    ]  # fmt: skip
    model = make_model(nodes, [tensor("x", x.shape)], [tensor("y", None)], tables)
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)


def test_upsample_and_old_resize(tmp_path: Path) -> None:
    """Upsample of opset 9 and Resize of opset 10 repeat elements."""
    x = image(1, 2, 3, 4)
    for opset, op in ((9, "Upsample"), (10, "Resize")):
        scales = numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "scales")
        graph = helper.make_graph(
            [node(op, "x scales", "y")], "g", [tensor("x", x.shape)], [tensor("y", None)], [scales]
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6
        )
        path = tmp_path / f"{op}.ingot"
        ingot.compile(model).save(path)
        (result,) = run_all_ways(path, [{"x": x}])
        assert_close(x.repeat(2, 2).repeat(3, 3), result["y"], 0.0)


def test_layout_and_followers(tmp_path: Path) -> None:
    """Between convolutions, channels-last, with an activation behind it: the same numbers."""
    rng = np.random.default_rng(3)
    x = image(1, 3, 8, 8)
    tables = {
        "w": rng.standard_normal((20, 3, 3, 3)).astype(np.float32),
        "v": rng.standard_normal((4, 20, 1, 1)).astype(np.float32),
        "sizes": np.array([1, 20, 13, 16]),
    }
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("Resize", "a - - sizes", "b", mode="linear"),
        node("Relu", "b", "c"),
        node("Conv", "c v", "y"),
    ]
    model = make_model(nodes, [tensor("x", x.shape)], [tensor("y", None)], tables)
    check_model(model, [{"x": x}], tmp_path, 1e-4, floor=1e-3)


@pytest.mark.broad
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "pytorch_half_pixel"])
@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_by_whole_factors(tmp_path: Path, coordinates: str, nearest: str) -> None:
    """Sizes that are multiplied or divided by integers need no coordinates, and pick the same
    elements: of rows with and without a rest behind whole vectors, of open sizes, of one element."""
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
    factors = {"twice": (2, 2), "quarter": (2, 4), "mixed": (3, 0.5), "half": (0.5, 0.25)}
    nodes = [node("Resize", f"x - {name}", name + "_y", **attributes) for name in factors]
    constants: dict[str, Array] = {
        name: np.array([1, 1, *pair], np.float32) for name, pair in factors.items()
    }
    outputs = [tensor(name + "_y", None) for name in factors]
    model = make_model(nodes, [tensor("x", [1, 2, "h", "w"])], outputs, constants)
    calls = [{"x": image(1, 2, *sizes)} for sizes in ((4, 36), (8, 20), (2, 4))]
    check_model(model, calls, tmp_path)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("target", ["sizes", "scales"])
def test_a_result_of_one_row_is_the_first(tmp_path: Path, mode: str, target: str) -> None:
    """In the mode of PyTorch, ONNX's text puts it at 0, also where a scale leaves more than one row of which
    one is kept; so does ONNX Runtime. ONNX's reference takes -0.5, or the middle."""
    x = image(1, 2, 5, 4)
    tables = {"sizes": np.array([1, 2, 1, 4]), "scales": np.array([1, 1, 0.3, 1], np.float32)}
    operands = "x - - sizes" if target == "sizes" else "x - scales"
    how = {"mode": mode, "coordinate_transformation_mode": "pytorch_half_pixel"}
    nodes = [node("Resize", operands, "y", **how)]
    shapes: tuple[list[int | str], ...] = ([1, 2, 5, 4], [1, 2, "h", "w"])
    for given in shapes:
        model = make_model(
            nodes, [tensor("x", given)], [tensor("y", None)], {target: tables[target]}
        )
        ingot.compile(model).save(tmp_path / "m")
        for found in run_all_ways(tmp_path / "m", [{"x": x}]):
            np.testing.assert_allclose(found["y"], x[:, :, :1], rtol=1e-6)


def test_equal_rows_of_a_large_result(tmp_path: Path) -> None:
    """Rows that are stored one after the other, of known and of open sizes, are those that are stored
    together where rows are short."""
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    tables = {"s": np.array([1, 1, 2, 2], np.float32)}
    open_shape: list[int | str] = ["b", 1, "h", "w"]
    cases = ((open_shape, (3, 13, 90)), ([1, 1, 301, 450], (450,)))
    for shape, sizes in cases:
        nodes = [node("Resize", "x - s", "z", **how), node("Relu", "z", "y")]
        model = make_model(nodes, [tensor("x", shape)], [tensor("y", None)], tables)
        ingot.compile(model).save(tmp_path / "m")
        for width in sizes:
            x = image(1, 1, 301, width)
            expected = np.maximum(x, 0).repeat(2, 2).repeat(2, 3)
            for found in run_all_ways(tmp_path / "m", [{"x": x}]):
                np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_scales_that_a_converter_made_halves_are_known(tmp_path: Path, mode: str) -> None:
    """Converters to f16 write scales as f16 and a Cast: the size of the result is known all the
    same, and no call works out positions and weights for each element."""
    x = image(1, 2, 5, 4)
    nodes = [
        node("Cast", "halves", "scales", to=TensorProto.FLOAT),
        node("Resize", "x - scales", "y", mode=mode),
    ]
    scales = {"halves": np.array([1, 1, 2, 1.7], np.float16)}
    model = make_model(nodes, [tensor("x", x.shape)], [tensor("y", None)], scales)
    (result,) = check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-5)
    assert result["y"].shape == (1, 2, 10, 6)
    assert "read_dim" not in ingot.compile(model).text("graph")
