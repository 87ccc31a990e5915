"""Reductions over one axis, slices along axes, and pads, that only the call tells, of known sizes
and of open ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal

import ingot
import ingot_runtime
from ingot_compiler.ir.dims import symbol

_MODES: dict[str, Literal["constant", "edge", "reflect"]] = {
    "constant": "constant", "edge": "edge", "reflect": "reflect",
}  # fmt: skip
_SHAPES = ((5,), (1,), (7, 33), (40, 1), (3, 4, 5), (2, 1, 17), (2, 3, 1), (2, 3, 4, 1))
_REDUCED: dict[str, Callable[[Array, int, bool], Array]] = {
    "ReduceSum": lambda x, axis, keepdims: np.sum(x, axis, keepdims=keepdims),
    "ReduceMax": lambda x, axis, keepdims: np.max(x, axis, keepdims=keepdims),
    "ReduceL1": lambda x, axis, keepdims: np.sum(np.abs(x), axis, keepdims=keepdims),
}


def _session(model: ModelProto, folder: Path) -> ingot_runtime.Session:
    ingot.compile(model).save(folder / "model.ingot")
    return ingot_runtime.load(str(folder / "model.ingot"))


def _declared(shape: Sequence[int], *, is_open: bool) -> list[int | str]:
    return [f"n{axis}" if is_open else size for axis, size in enumerate(shape)]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("function", _REDUCED)
def test_one_reduced_axis(tmp_path: Path, function: str, is_open: bool, keepdims: int) -> None:
    """Each axis from the front and from the end, also behind or before axes of one element."""
    for shape in _SHAPES:
        inputs = [
            tensor("x", _declared(shape, is_open=is_open)),
            tensor("axes", [1], TensorProto.INT64),
        ]
        nodes = [node(function, "x axes", "y", keepdims=keepdims)]
        session = _session(make_model(nodes, inputs, [tensor("y", None)]), tmp_path)
        x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
        for axis in range(-len(shape), len(shape)):
            got = session.run({"x": x, "axes": np.array([axis])})["y"]
            expected = _REDUCED[function](x, axis, bool(keepdims))
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("axis", [2, -3])
def test_a_reduced_axis_that_is_none(tmp_path: Path, axis: int) -> None:
    """The call is refused, as the range of axes says."""
    inputs = [tensor("x", [2, 3]), tensor("axes", [1], TensorProto.INT64)]
    nodes = [node("ReduceSum", "x axes", "y")]
    session = _session(make_model(nodes, inputs, [tensor("y", None)]), tmp_path)
    with pytest.raises(ingot_runtime.InputError):
        session.run({"x": np.ones((2, 3), np.float32), "axes": np.array([axis])})


@pytest.mark.parametrize("columns", [0, 1, 2, 5])
def test_rows_of_one_open_column_are_summed_in_lanes(columns: int) -> None:
    """An open axis in lanes has a form for one element, whose loop is over what is reduced."""
    builder = Builder([f32(3, 70, symbol("n"))])
    total = builder.op("reduce", 0, function="sum", axes=(1,), keepdims=False)
    assert len(compile_graph(builder.finish([total])).programs) == 2
    check_graph(builder, [total], [normal(0, 3, 70, columns)])


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_slices_along_axes_of_a_run(tmp_path: Path, is_open: bool, count: int) -> None:
    """Bounds inside, outside, from the end, and none between them; in steps of 1 and others."""
    shape, names = (4, 5, 6), ("starts", "ends", "axes", "steps")
    inputs = [tensor("x", _declared(shape, is_open=is_open))]
    inputs += [tensor(name, [count], TensorProto.INT64) for name in names]
    nodes = [
        node("Slice", "x starts ends axes steps", "y"),
        node("Slice", "x starts ends axes", "z"),
    ]
    session = _session(make_model(nodes, inputs, [tensor("y", None), tensor("z", None)]), tmp_path)
    x = np.arange(120, dtype=np.float32).reshape(shape)
    bounds = [(0, 2), (1, 99), (-2, -1), (3, 1), (-99, 4)]
    for axes in ((0,), (2,), (-2,)) if count == 1 else ((0, 2), (-1, 1)):
        for chosen, steps in product(product(bounds, repeat=count), [(1, 1), (1, -1), (2, 1)]):
            vectors = {
                "starts": np.array([start for start, _ in chosen]),
                "ends": np.array([end for _, end in chosen]),
                "axes": np.array(axes),
                "steps": np.array(steps[-count:]),
            }
            where, dense = [slice(None)] * 3, [slice(None)] * 3
            for axis, pair, step in zip(axes, chosen, steps[-count:], strict=True):
                where[axis], dense[axis] = slice(*pair, step), slice(*pair)
            got = session.run({"x": x, **vectors})
            np.testing.assert_array_equal(got["y"], x[tuple(where)])
            np.testing.assert_array_equal(got["z"], x[tuple(dense)])


def test_slices_of_a_run_in_all_ways(tmp_path: Path) -> None:
    """One copy or picked rows, into an output that something else reads, by each way to run."""
    inputs = [tensor("x", ["a", "b", "c"])]
    inputs += [tensor(name, [2], TensorProto.INT64) for name in ("starts", "ends", "axes", "steps")]
    nodes = [node("Slice", "x starts ends axes steps", "y"), node("Neg", "y", "z")]
    path, x = tmp_path / "model.ingot", np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    ingot.compile(make_model(nodes, inputs, [tensor("y", None), tensor("z", None)])).save(path)
    asked = list(product([(0, 2), (-2, -1), (3, 1)], [(1, 1), (2, -1), (1, 3)]))
    feeds = [
        {
            "x": x, "starts": np.array([start, 5]), "ends": np.array([end, 0 if last < 0 else 99]),
            "axes": np.array([0, 2]), "steps": np.array([step, last]),
        }
        for (start, end), (step, last) in asked
    ]  # fmt: skip
    results = run_all_ways(path, feeds)
    for ((start, end), (step, last)), got in zip(asked, results, strict=True):
        right = x[start:end:step, :, 5 : 0 if last < 0 else 99 : last]
        np.testing.assert_array_equal(got["y"], right)
        np.testing.assert_array_equal(got["z"], -right)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pads_of_a_run(tmp_path: Path, mode: str, is_open: bool) -> None:
    """What is added, and what is removed, at each end."""
    shape = (2, 5, 6)
    inputs = [
        tensor("x", _declared(shape, is_open=is_open)),
        tensor("pads", [6], TensorProto.INT64),
    ]
    nodes = [node("Pad", "x pads", "y", mode=mode)]
    session = _session(make_model(nodes, inputs, [tensor("y", None)]), tmp_path)
    x = np.arange(1, 61, dtype=np.float32).reshape(shape)
    for before, after in product([(0, 0, 0), (0, 1, 2), (0, -1, 3), (-1, -2, -3)], repeat=2):
        left = [
            max(size + min(a, 0) + min(b, 0), -1)
            for size, a, b in zip(shape, before, after, strict=True)
        ]
        added = [(max(a, 0), max(b, 0)) for a, b in zip(before, after, strict=True)]
        if (
            any(size < max(3, *pads) for size, pads in zip(left[1:], added[1:], strict=True))
            or left[0] < 1
        ):
            continue
        cropped = x[
            tuple(
                slice(max(-a, 0), max(-a, 0) + size) for a, size in zip(before, left, strict=True)
            )
        ]
        got = session.run({"x": x, "pads": np.array([*before, *after])})["y"]
        expected = np.pad(cropped, added, _MODES[mode])
        np.testing.assert_array_equal(got, expected)
