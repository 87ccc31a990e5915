"""Labels that an operand of ``Einsum`` has twice, with sizes that are known, open or named
differently, as NumPy computes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import ingot
import ingot_runtime


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("equation", "shape", "dims"),
    [
        ("ii->i", (5, 5), None),
        ("ii->", (5, 5), ["n", "n"]),
        ("ii->i", (5, 5), ["n", "m"]),
        ("ibi->bi", (4, 3, 4), ["n", 3, "n"]),
        ("iii->i", (3, 3, 3), None),
        ("iijj->ji", (3, 3, 4, 4), ["n", "n", "m", "m"]),
        ("ii->i", (0, 0), None),
    ],
)
def test_diagonals(
    tmp_path: Path, equation: str, shape: Sequence[int], dims: Sequence[int | str] | None
) -> None:
    """What is beside a diagonal, infinities here, takes no part."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = np.einsum(equation, x)
    places = np.indices(shape)
    beside = np.zeros(shape, bool)
    for axis in range(len(shape)):
        beside |= places[axis] != places[equation.index(equation[axis])]
    x[beside] = np.inf
    graph = helper.make_graph(
        [helper.make_node("Einsum", ["x"], ["y"], equation=equation)],
        "einsum",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims or shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    ingot.compile(model).save(str(tmp_path / "einsum.ingot"))
    session = ingot_runtime.load(str(tmp_path / "einsum.ingot"))
    np.testing.assert_array_equal(session.run({"x": x})["y"], expected)
