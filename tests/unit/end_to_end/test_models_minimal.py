"""Small graphs cut out of real exports that once went wrong; each says which export it came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor


def test_sizes_read_at_run_time_are_not_loop_variables(tmp_path: Path) -> None:
    """A size that is only known at run time keeps its value inside and after a reduction
    (segformer, open height)."""
    model = make_model(
        [
            node("ConstantOfShape", "shape", "zeros"),
            node("Size", "zeros", "size"),
            node("Cast", "size", "count", to=TensorProto.FLOAT),
            node("ReduceSum", "x", "sum", keepdims=0),
            node("Mul", "sum count", "after"),
            node("Add", "zeros y", "grown"),
            node("Mul", "grown count", "scaled"),
            node("ReduceSum", "scaled axes", "inside", keepdims=0),
        ],
        [tensor("shape", [2], TensorProto.INT64), tensor("x", [5, 3]), tensor("y", ["columns"])],
        [tensor("after", []), tensor("inside", ["columns"])],
        {"axes": np.array([0], np.int64)},
    )
    random = np.random.RandomState(3)
    feeds: list[dict[str, Array]] = [
        {
            "shape": np.array([rows, columns], np.int64),
            "x": random.rand(5, 3).astype(np.float32),
            "y": random.rand(columns).astype(np.float32),
        }
        for rows, columns in ((2, 3), (7, 1), (1, 9))
    ]
    check_model(model, feeds, tmp_path)
