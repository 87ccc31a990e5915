"""Values without elements on devices with memory of their own: given, in between, constant, handed
out, of a fixed size and of a call's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime

DEVICES = {"acc": "cpu:1", "ocl": "opencl"}
PLACES = {
    "one": {"*": "acc"},
    "opencl": {"*": "ocl"},
    "turns": {"neg": "acc", "exp": "ocl", "sum": "acc", "whole": "host"},
}


def network(rows: int | str) -> ModelProto:
    """``x`` of no rows: its negative, the exponential, that plus a constant, the sum; beside them what
    fills whole pages of a pool, so that what is empty may lie at its very end."""
    nodes = [
        node("Neg", "x", "a"),
        node("Exp", "a", "y"),
        node("Add", "y c", "b"),
        node("ReduceSum", "b axes", "s", keepdims=0),
        node("Add", "z s", "w"),
        node("Softmax", "w", "t"),
    ]
    names = ("neg", "exp", "sum", "sum", "whole", "whole")
    for each, name in zip(nodes, names, strict=True):
        each.name = name
    constant = np.zeros((0, 1024) if rows == 0 else (1, 1024), np.float32)
    return make_model(
        nodes,
        [tensor("x", [rows, 1024]), tensor("z", [1024])],
        [tensor("y", [rows, 1024]), tensor("t", [1024])],
        {"c": constant, "axes": np.array([0])},
    )


@pytest.mark.sweep(10)
@pytest.mark.parametrize("rows", [0, "n"])
@pytest.mark.parametrize(
    "place",
    ["one", *(pytest.param(each, marks=pytest.mark.opencl) for each in ("opencl", "turns"))],
)
def test_what_is_empty_crosses_devices(place: str, rows: int | str) -> None:
    """Results are those of NumPy, native and stepped."""
    model, z = network(rows), np.linspace(-1, 1, 1024, dtype=np.float32)
    devices = {name: kind for name, kind in DEVICES.items() if name in PLACES[place].values()}
    made = ingot.compile(model, targets=["x86-64-v2"], devices=devices, place=PLACES[place])
    bundle = made.to_bytes()
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            for count in (0,) if rows == 0 else (0, 3, 0):
                x = np.full((count, 1024), 0.5, np.float32)
                found = session.run({"x": x, "z": z})
                assert found["y"].shape == (count, 1024)
                np.testing.assert_allclose(found["y"], np.exp(-x), rtol=1e-6)
                shifted = np.exp(z)  # what is added to all of them drops out
                np.testing.assert_allclose(found["t"], shifted / shifted.sum(), rtol=1e-5)
            assert sum(session.device_counts().launches.values()) > 0
