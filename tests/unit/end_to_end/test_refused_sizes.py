"""A call that the model refuses: every loader names the inputs that the sizes of the reason come
from, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.c_loader import CBundle, LoaderError

import ingot
import ingot_runtime

Feed = dict[str, "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"]


def _model(
    nodes: list[NodeProto],
    inputs: Mapping[str, tuple[TensorProto.DataType, list[str]]],
    constants: Mapping[str, int | list[int]],
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "m",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(it, np.int64), name) for name, it in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def masked() -> ModelProto:
    """A row of a mask for each token, as exported encoders pick them."""
    nodes = [
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["length"]),
        helper.make_node("Range", ["zero", "length", "one"], ["positions"]),
        helper.make_node("Unsqueeze", ["positions", "last"], ["indices"]),
        helper.make_node("Transpose", ["mask"], ["rows"]),
        helper.make_node("GatherND", ["rows", "indices"], ["y"], name="/mask/GatherND"),
    ]
    types = {"ids": (TensorProto.INT64, ["b", "s"]), "mask": (TensorProto.FLOAT, ["b", "m"])}
    return _model(nodes, types, {"zero": 0, "one": 1, "last": [1]})


def added() -> ModelProto:
    """Two open sizes that have to go together."""
    types = {"x": (TensorProto.FLOAT, ["n"]), "z": (TensorProto.FLOAT, ["m"])}
    return _model([helper.make_node("Add", ["x", "z"], ["y"], name="add")], types, {})


CASES: dict[str, tuple[Callable[[], ModelProto], Feed, str, str]] = {
    "a mask of a wrong length": (
        masked,
        {"ids": np.zeros((2, 7), np.int64), "mask": np.zeros((2, 5), np.float32)},
        "expected every index in [-m, m) (node '/mask/GatherND' (GatherND)); m is 5 in input 'mask'",
        "give other sizes or values",
    ),
    "two sizes": (
        added,
        {"x": np.zeros(3, np.float32), "z": np.zeros(4, np.float32)},
        "; n is 3 in input 'x'; m is 4 in input 'z'",
        "give other sizes or values",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_inputs_are_named(name: str, tmp_path: Path) -> None:
    """By both executors, and by the loader in C."""
    make, feed, why, do = CASES[name]
    ingot.compile(make(), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(tmp_path / "m.ingot", executor=executor)
        with pytest.raises(ingot_runtime.InputError) as caught:
            session.run(feed)
        assert caught.value.why.endswith(why)
        assert caught.value.do == do
    with CBundle(tmp_path / "m.ingot") as bundle, pytest.raises(LoaderError) as in_c:
        bundle.run(feed)
    assert (in_c.value.why, in_c.value.todo) == (caught.value.why, do)
