"""Reductions over axes that are data, as many as a call gives: the rank stays where dimensions are
kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, reference, run_all_ways, tensor
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import UnsupportedError

OPS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


def _model(op: str, **attributes: int) -> ModelProto:
    inputs = [tensor("x", ("n", 3, 2)), tensor("axes", ("k",), TensorProto.INT64)]
    return make_model(
        [node(f"Reduce{op}", "x axes", "y", **attributes)], inputs, [tensor("y", None)]
    )


@pytest.mark.sweep(30)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("noop", [0, 1])
def test_any_number_of_axes(op: str, noop: int, tmp_path: Path) -> None:
    """Every set of axes, counted from the front or the end, none among them: all then, or, where
    the model says so, no axis."""
    model = _model(op, keepdims=1, noop_with_empty_axes=noop)
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    x = np.random.default_rng(1).random((2, 3, 2)).astype(np.float32) + 0.5
    chosen = [axes for count in range(4) for axes in itertools.combinations((0, -2, 2), count)]
    feeds: list[dict[str, Array]] = [{"x": x, "axes": np.array(axes, np.int64)} for axes in chosen]
    for feed, found in zip(feeds, run_all_ways(path, feeds), strict=True):
        assert_close(reference(model, feed)["y"], found["y"], 1e-5)
    session = ingot_runtime.load(path)
    for wrong in ([3], [-4], [0, -3]):
        with pytest.raises(ingot_runtime.BundleError, match="axis"):
            session.run({"x": x, "axes": np.array(wrong)})


def test_dimensions_that_go_need_a_number() -> None:
    """Without keepdims the number of axes is the rank of the result: it is refused for that."""
    with pytest.raises(UnsupportedError, match="a number of dimensions that is known at run time"):
        ingot.compile(_model("Sum", keepdims=0))
