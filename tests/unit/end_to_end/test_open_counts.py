"""TopK of as many elements as the call says, around the numbers from which on rows are sorted and
no longer selected from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime
from ingot_compiler.lowering.kinds.select_candidates import OPEN_COUNT_MAX, least_length

_LENGTHS = (1, 65, *(least_length(OPEN_COUNT_MAX) + more for more in (-1, 0, 1)), 3000)
_DTYPES = {"f4": TensorProto.FLOAT, "i4": TensorProto.INT32, "u1": TensorProto.UINT8}
_COUNTS = (0, 1, 5, OPEN_COUNT_MAX - 1, OPEN_COUNT_MAX, OPEN_COUNT_MAX + 1, 373)


def _first(x: Array, count: int) -> Array:
    """Positions of the greatest elements, the first ones of equal elements first."""
    return np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[:, :count]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("length", [None, *_LENGTHS])
@pytest.mark.parametrize("kind", _DTYPES)
def test_counts_of_a_run(tmp_path: Path, kind: str, length: int | None) -> None:
    """Values and positions, with many equal elements, of rows of known length and of open one."""
    dtype = _DTYPES[kind]
    shape: list[int | str] = ["rows", "columns" if length is None else length]
    inputs = [tensor("x", shape, dtype), tensor("k", [1], TensorProto.INT64)]
    outputs = [tensor("values", None, dtype), tensor("places", None, TensorProto.INT64)]
    model = make_model([node("TopK", "x k", "values places")], inputs, outputs)
    ingot.compile(model).save(tmp_path / "top.ingot")
    session = ingot_runtime.load(str(tmp_path / "top.ingot"))
    random = np.random.default_rng(0)
    for columns in _LENGTHS if length is None else (length,):
        for spread in (3, 200):
            x = random.integers(0, spread, (3, columns)).astype(kind)
            for count in (each for each in (*_COUNTS, columns) if each <= columns):
                got = session.run({"x": x, "k": np.array([count])})
                places = _first(x, count)
                np.testing.assert_array_equal(got["places"], places)
                np.testing.assert_array_equal(got["values"], np.take_along_axis(x, places, -1))
