"""Sorting, picking and results whose size the data decide, from ONNX to machine code, beside ONNX's
reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, run_all_ways, tensor

import ingot
import ingot_runtime

I64 = TensorProto.INT64


@pytest.mark.sweep(60)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(tmp_path: Path, axis: int, largest: int) -> None:
    """The k best along any axis, sorted, equal ones in order; k may be an input."""
    x = np.random.default_rng(0).integers(0, 9, (4, 5, 6)).astype(np.float32)
    nodes = [node("TopK", "x k", "v i", axis=axis, largest=largest)]
    inputs = [tensor("x", x.shape), tensor("k", [1], I64)]
    model = make_model(nodes, inputs, [tensor("v", None), tensor("i", None, I64)])
    check_model(model, [{"x": x, "k": np.array([k])} for k in (0, 1, 4)], tmp_path)


def test_top_k_of_nan(tmp_path: Path) -> None:
    """NaN is above every number, so that no two elements share a rank."""
    x = np.array([1, np.nan, 3, np.inf, np.nan], np.float32)
    model = make_model(
        [node("TopK", "x k", "v i")],
        [tensor("x", [5])],
        [tensor("v", None), tensor("i", None, I64)],
        {"k": np.array([5])},
    )
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    assert result["i"].tolist() == [1, 4, 3, 2, 0]


def test_non_zero(tmp_path: Path) -> None:
    """One bundle gives as many indices as there are elements, from none to all."""
    x = np.random.default_rng(1).integers(0, 2, (3, 4, 5)).astype(np.float32)
    model = make_model(
        [node("NonZero", "x", "y")], [tensor("x", ["a", "b", "c"])], [tensor("y", None, I64)]
    )
    check_model(model, [{"x": values} for values in (x, x[:1] * 0, x * 0 + 1, x[:0])], tmp_path)


def test_a_size_of_the_data_feeds_kernels(tmp_path: Path) -> None:
    """What follows a result of unknown size runs on that size, and the session can be used
    again."""
    nodes = [
        node("NonZero", "x", "i"), node("Transpose", "i", "t", perm=[1, 0]), node("GatherND", "x t", "v"),
        node("Exp", "v", "y"), node("ReduceSum", "v", "s", keepdims=0),
    ]  # fmt: skip
    model = make_model(
        nodes, [tensor("x", [6, 7])], [tensor("y", None), tensor("s", None), tensor("t", None, I64)]
    )
    rng = np.random.default_rng(2)
    feeds = [
        {"x": (rng.standard_normal((6, 7)) * (rng.random((6, 7)) < share)).astype(np.float32)}
        for share in (0.5, 0, 1)
    ]
    check_model(model, feeds, tmp_path, 1e-5, floor=1e-6)


def test_a_late_output_cannot_be_bound(tmp_path: Path) -> None:
    """A large output whose size the data decide has no fixed address: bind says so."""
    model = make_model(
        [node("NonZero", "x", "y")], [tensor("x", [200000])], [tensor("y", None, I64)]
    )
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    with pytest.raises(ingot_runtime.InputError, match="depends on the data"):
        session.bind({"x": np.zeros(200000, np.float32)})


def test_a_small_late_output_is_planned_as_its_upper_bound(tmp_path: Path) -> None:
    """It has a fixed address, and with what is between it no block of its own: its shape is told
    after each run, from nothing to all."""
    nodes = [node("NonZero", "x", "i"), node("Transpose", "i", "y", perm=[1, 0])]
    model = make_model(nodes, [tensor("x", [3, 4])], [tensor("y", None, I64)])
    x = np.random.default_rng(1).integers(0, 2, (3, 4)).astype(np.float32)
    feeds = [{"x": values.astype(np.float32)} for values in (x, x * 0, x * 0 + 1)]
    check_model(model, feeds, tmp_path)
    compiled = ingot.compile(model)
    compiled.save(tmp_path / "m.ingot")
    given = np.zeros_like(x)
    bound = ingot_runtime.load(tmp_path / "m.ingot").bind({"x": given})
    for feed in feeds:
        given[...] = feed["x"]
        bound.run()
        expected = np.argwhere(given)
        assert bound.output_shape("y") == expected.shape
        flat = bound.outputs["y"].reshape(-1)[: expected.size]
        np.testing.assert_array_equal(flat.reshape(expected.shape), expected)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": 1}])
def test_compress(tmp_path: Path, attributes: dict[str, Any]) -> None:
    """Slices or elements whose condition is true; a short condition ends early."""
    x = np.random.default_rng(3).standard_normal((3, 4)).astype(np.float32)
    inputs = [tensor("x", x.shape), tensor("c", ["n"], TensorProto.BOOL)]
    model = make_model([node("Compress", "x c", "y", **attributes)], inputs, [tensor("y", None)])
    conditions = [
        np.array(flags, np.bool_) for flags in ((True, False, True), (False, False), (True,))
    ]
    check_model(model, [{"x": x, "c": condition} for condition in conditions], tmp_path)


@pytest.mark.broad
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(tmp_path: Path, order: int, axis: int | None) -> None:
    """Different elements or slices, sorted or as they come, with first positions, inverse and
    counts."""
    x = np.array([[2, 1, 2, 2], [2, 1, 2, 0], [2, 1, 2, 2]], np.float32)
    attributes = {"sorted": order} if axis is None else {"sorted": order, "axis": axis}
    outputs = [tensor("y", None), *(tensor(name, None, I64) for name in ("i", "v", "c"))]
    model = make_model(
        [node("Unique", "x", "y i v c", **attributes)], [tensor("x", x.shape)], outputs
    )
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    # ONNX's reference fails when it does not sort: numpy gives sorted results, and their first
    # positions.
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    ranked = np.arange(len(first)) if order else np.argsort(first)
    np.testing.assert_array_equal(result["y"], np.take(values, ranked, axis or 0))
    np.testing.assert_array_equal(result["i"], first[ranked])
    np.testing.assert_array_equal(result["v"], np.argsort(ranked)[inverse.ravel()])
    np.testing.assert_array_equal(result["c"], counts[ranked])


@pytest.mark.broad
@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(tmp_path: Path, center: int) -> None:
    """Overlapping boxes of a class lose to better ones, per batch and class, up to the limit."""
    rng = np.random.default_rng(4)
    corners = rng.random((2, 40, 4)).astype(np.float32)
    feed = {
        "b": corners, "s": rng.random((2, 3, 40)).astype(np.float32), "m": np.array([7]),
        "t": np.array([0.3], np.float32), "l": np.array([0.4], np.float32),
    }  # fmt: skip
    inputs = [tensor(name, value.shape, I64 if name == "m" else 1) for name, value in feed.items()]
    model = make_model(
        [node("NonMaxSuppression", "b s m t l", "y", center_point_box=center)],
        inputs,
        [tensor("y", None, I64)],
    )
    check_model(model, [feed], tmp_path)


def test_reverse_and_running_products(tmp_path: Path) -> None:
    """Rows backwards as far as their lengths say."""
    x = np.random.default_rng(5).standard_normal((5, 3, 2)).astype(np.float32)
    model = make_model(
        [node("ReverseSequence", "x n", "y")],
        [tensor("x", x.shape), tensor("n", [3], I64)],
        [tensor("y", None)],
    )
    check_model(
        model, [{"x": x, "n": np.array(lengths)} for lengths in ((5, 1, 3), (2, 2, 4))], tmp_path
    )


def _windows() -> list[dict[str, Any]]:
    return [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [1, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 2], "dilations": [2, 2]},
    ]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("attributes", _windows())
def test_positions_of_max_pool(tmp_path: Path, attributes: dict[str, Any]) -> None:
    """MaxPool's second result names the element that won."""
    x: Array = (
        np.random.default_rng(6).permutation(2 * 3 * 6 * 6).reshape(2, 3, 6, 6).astype(np.float32)
    )
    outputs = [tensor("y", None), tensor("i", None, I64)]
    model = make_model([node("MaxPool", "x", "y i", **attributes)], [tensor("x", x.shape)], outputs)
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    assert x.ravel()[result["i"]].tobytes() == result["y"].tobytes()


def test_max_pool_of_integers_of_open_sizes(tmp_path: Path) -> None:
    """What stands around a row is below every integer; rows of any length."""
    nodes = [node("MaxPool", "x", "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1])]
    x = tensor("x", (1, 2, "h", "w"), TensorProto.INT8)
    model = make_model(nodes, [x], [tensor("y", None, TensorProto.INT8)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    random = np.random.default_rng(7)
    arrays = [
        random.integers(-128, -100, (1, 2, *sizes)).astype(np.int8)
        for sizes in ((4, 37), (1, 1), (3, 64))
    ]
    results = run_all_ways(tmp_path / "m.ingot", [{"x": array} for array in arrays])
    for array, result in zip(arrays, results, strict=True):
        wide = np.pad(array, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128)
        windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
        np.testing.assert_array_equal(result["y"], windows.max((-2, -1)))


def test_unique_rows_without_elements(tmp_path: Path) -> None:
    """All rows of nothing are equal: found by fuzzing, they were refused."""
    outputs = [tensor("y", None), tensor("i", None, I64), tensor("v", None, I64), tensor("c", None, I64)]  # fmt: skip
    model = make_model([node("Unique", "x", "y i v c", axis=0)], [tensor("x", (4, 0))], outputs)
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": np.zeros((4, 0), np.float32)}])
    assert result["y"].shape == (1, 0)
    assert [result[name].tolist() for name in "ivc"] == [[0], [0, 0, 0, 0], [4]]


@pytest.mark.broad
@pytest.mark.parametrize("most", [5, 90, 700])
@pytest.mark.parametrize("is_open", [False, True])
def test_suppression_of_many(tmp_path: Path, most: int, is_open: bool) -> None:
    """Candidates that fill several rounds, with equal scores among them, in classes of which one
    has none: in one list, to the last one and up to a limit."""
    draw = np.random.default_rng(most)
    corners = draw.uniform(0, 100, (2, 700, 2))
    boxes = np.concatenate([corners, corners + draw.uniform(1, 20, (2, 700, 2))], -1)
    scores = draw.uniform(0, 1, (2, 3, 700)).astype(np.float32).round(2)
    scores[0, 1], scores[1, 1] = 0.1, 0.7
    scores[1, 2, 5:9] = 1e-30, -3.0, np.inf, 2.0
    feed = {"b": boxes.astype(np.float32), "s": scores}
    sizes: dict[str, Sequence[int | str]] = {"b": (2, "n", 4), "s": (2, 3, "n")}
    inputs = [tensor(name, sizes[name] if is_open else x.shape) for name, x in feed.items()]
    limits = {"m": np.array([most]), "t": np.array([0.4], np.float32), "l": np.array([0.3], np.float32)}  # fmt: skip
    nodes = [node("NonMaxSuppression", "b s m t l", "y")]
    model = make_model(nodes, inputs, [tensor("y", None, I64)], limits)
    check_model(model, [feed], tmp_path)


@pytest.mark.sweep(30)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("is_open", [False, True])
def test_positions_of_equal_maxima(tmp_path: Path, dtype: str, order: int, is_open: bool) -> None:
    """Of equal elements the first one wins, whichever way finds it; windows reach beyond images."""
    x = np.random.default_rng(8).integers(-3, 2, (2, 3, 5, 6)).astype(dtype)
    if dtype == "float32":
        x[0, 0, 0, :2] = -0.0, 0.0
        x[1, 2] = -np.inf
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 0], "storage_order": order}  # fmt: skip
    sizes: Sequence[int | str] = (2, 3, "h", "w") if is_open else x.shape
    outputs = [tensor("y", None, kind), tensor("i", None, I64)]
    model = make_model(
        [node("MaxPool", "x", "y i", **attributes)], [tensor("x", sizes, kind)], outputs
    )
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    for (image, channel, row, column), found in np.ndenumerate(result["i"]):
        inside = [
            (y, z)
            for y in range(2 * row - 1, 2 * row + 2)
            for z in range(column - 1, column + 1)
            if 0 <= y < 5 and 0 <= z < 6
        ]
        y, z = max(inside, key=lambda place: x[image, channel, place[0], place[1]])
        place = z * 5 + y if order else y * 6 + z
        assert found == (image * 3 + channel) * 30 + place


@pytest.mark.broad
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.BOOL, TensorProto.FLOAT16])
@pytest.mark.parametrize("k", [0, 3, -5, 129, 131, -200])
def test_eye_like(tmp_path: Path, k: int, dtype: int, *, is_open: bool) -> None:
    """Matrices that are compared and those into which ones are scattered; diagonals outside, empty
    matrices."""
    shapes = ((4, 6), (140, 131), (131, 140), (0, 5), (5, 0))
    for shape in shapes:
        x = np.zeros(shape, np.float32)
        model = make_model(
            [node("EyeLike", "x", "y", k=k, dtype=dtype), node("Identity", "y", "z")],
            [tensor("x", ["n", "m"] if is_open else shape)],
            [tensor("z", None, dtype)],
        )
        ingot.compile(model).save(tmp_path / "m.ingot")
        for result in run_all_ways(tmp_path / "m.ingot", [{"x": x}]):
            expected = np.eye(*shape, k, dtype=helper.tensor_dtype_to_np_dtype(dtype))
            np.testing.assert_array_equal(result["z"], expected)
            assert result["z"].dtype == expected.dtype


_BAGS = """<ir_version: 9, opset_import: ["" : 20]>
m (float[n,4] x, int64[b] offsets, int64 i) => (float[4] y) {{
 one = Constant<value = int64[1] {{1}}>()
 flat = Constant<value = int64[1] {{-1}}>()
 from = Reshape(i, flat)
 to = Add(from, one)
 behind = Add(to, one)
 start = Slice(offsets, from, to)
 end = Slice(offsets, to, behind)
 first = Constant<value = int64[1] {{0}}>()
 rows = Slice(x, start, end{axes})
 y = ReduceSum<keepdims = 0>(rows, first)
}}"""


@pytest.mark.sweep(60)
@pytest.mark.parametrize("axes", ["", ", first"])
def test_bounds_that_are_slices_of_a_list(tmp_path: Path, axes: str) -> None:
    """An EmbeddingBag as PyTorch exports it: only a run knows how many bounds a part of a list has.
    They are as many as axes, else one; other numbers are refused by the call."""
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    offsets = np.array([0, 2, 3, 5])
    source = parser.parse_model(_BAGS.format(axes=axes))
    feeds = [{"x": x, "offsets": offsets, "i": np.array(i)} for i in range(3)]
    check_model(source, feeds, tmp_path)
    ingot.compile(source).save(tmp_path / "m.ingot")
    with (
        ingot_runtime.load(tmp_path / "m.ingot") as session,
        pytest.raises(ingot_runtime.InputError, match="expected 1 bounds"),
    ):
        session.run({"x": x, "offsets": offsets, "i": np.array(4)})
