"""Convolutions many of whose taps lie outside of the image: sums over those that are inside.

In: sizes, dilations, pads. Out: pass or fail; the oracle is ONNX's reference. Not done here: other
convolutions (``test_end_to_end``), OpenCL and CUDA but for one of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, run_all_ways, tensor
from tests.ptx.fake_driver import installed

import ingot
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.taps_inside import spans_inside

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "far apart": ((2, 8, 15, 13), (20, 8, 3, 3), {"dilations": [6, 5], "pads": [6, 5, 6, 5]}),
    "beyond the image": ((1, 5, 6, 7), (33, 5, 3, 3), {"dilations": [9, 8], "pads": [9, 8, 9, 8]}),
    "strides, more before": (
        (1, 4, 16, 17), (17, 4, 3, 2),
        {"dilations": [5, 9], "strides": [2, 3], "pads": [11, 8, 3, 2]},
    ),
    "a line": ((2, 6, 40), (9, 6, 5), {"dilations": [9], "pads": [18, 18]}),
    "a volume": (
        (1, 3, 6, 7, 9), (18, 3, 3, 3, 3), {"dilations": [4, 3, 1], "pads": [4, 3, 1] * 2},
    ),
    "rows alone": ((1, 7, 12, 9), (16, 7, 3, 3), {"dilations": [8, 1], "pads": [8, 1, 8, 1]}),
}  # fmt: skip


def _model(
    shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any]
) -> tuple[ModelProto, Array]:
    random = np.random.default_rng(0)
    w, b = (random.standard_normal(size).astype(np.float32) for size in (weights, weights[:1]))
    model = make_model(
        [node("Conv", "x w b", "c", **attributes), node("Relu", "c", "y")],
        [tensor("x", list(shape))],
        [tensor("y", None)],
    )
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in (("w", w), ("b", b))
    )
    return model, random.standard_normal(shape).astype(np.float32)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("case", CASES)
def test_sums_are_those_of_the_reference(case: str, tmp_path: Path) -> None:
    """With one thread and several, native and stepped."""
    model, x = _model(*CASES[case])
    check_model(model, [{"x": x}], tmp_path)


def test_each_tile_has_its_taps(tmp_path: Path) -> None:
    """What is outside of the image for all pixels of a tile is not multiplied: numbers that are not
    finite would show it."""
    shape, weights, attributes = CASES["far apart"]
    model, x = _model(shape, weights, attributes)
    w = numpy_helper.to_array(model.graph.initializer[0]).copy()
    w[:, :, 0] = np.inf
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(w, "w"))
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    assert np.isfinite(result["y"][:, :, :6]).all()
    assert not np.isfinite(result["y"][:, :, 6:]).any()


@pytest.mark.broad
def test_on_a_gpu(tmp_path: Path) -> None:
    """The same program as PTX."""
    model, x = _model(*CASES["rows alone"])
    ingot.compile(model).save(tmp_path / "host.ingot")
    (host,) = run_all_ways(tmp_path / "host.ingot", [{"x": x}])
    with installed():
        ingot.compile(model, devices={"acc": "cuda"}, place={"*": "acc"}).save(tmp_path / "m.ingot")
        (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    np.testing.assert_allclose(result["y"], host["y"], 1e-5, 1e-5)


@pytest.mark.parametrize("dilation", [1, 2, 5, 9])
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("pad", [0, 4, 11])
def test_spans(dilation: int, stride: int, pad: int) -> None:
    """Each span has the taps that some pixel has, and none before the first or behind the last."""
    size, kernel, results = 12, 3, 8
    conv = ConvShape((kernel,), (stride,), (dilation,), (pad,), 1, 4)
    for first in range(results):
        for last in range(first, min(first + 4, results)):
            found = spans_inside(
                conv, (1, 4, size), (1, 4, results), ["tap0"], 0, first, last
            )["tap0"]  # fmt: skip
            inside = [
                tap
                for tap in range(kernel)
                for place in range(first, last + 1)
                if 0 <= place * stride - pad + tap * dilation < size
            ]
            start, count = found
            assert isinstance(start, int)
            assert isinstance(count, int)
            assert set(inside) <= set(range(start, start + count))
            assert not inside or (start, start + count - 1) == (min(inside), max(inside))
