"""Pads of axes whose size only the call tells: mirrors and repeats, also where a pad is longer than
the tensor, as NumPy pads."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from onnx import TensorProto, helper

import ingot
import ingot_runtime

_MODES: dict[str, Literal["reflect", "wrap", "edge"]] = {
    "reflect": "reflect", "wrap": "wrap", "edge": "edge",
}  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("pads", [(0, 3, 0, 3), (2, 5, 1, 0), (1, 0, 4, 6)])
def test_pads_of_open_sizes(tmp_path: Path, mode: str, pads: tuple[int, int, int, int]) -> None:
    """Sizes around those at which a pad needs more than one mirror or repeat."""
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)],
        "pad",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", "columns"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("pads", TensorProto.INT64, [4], pads)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    ingot.compile(model).save(str(tmp_path / "pad.ingot"))
    session = ingot_runtime.load(str(tmp_path / "pad.ingot"))
    for rows, columns in product((1, 2, 3), (1, 2, 3, 4, 5, 6, 7, 33)):
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        rows_from, columns_from = (
            np.pad(np.arange(size), (pads[axis], pads[axis + 2]), _MODES[mode])
            for axis, size in enumerate(x.shape)
        )
        expected = x[np.ix_(rows_from, columns_from)]
        np.testing.assert_array_equal(session.run({"x": x})["y"], expected)
