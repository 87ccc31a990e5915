"""One bundle over the host and devices with memory of their own: from marks to results, the bits of the host alone."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.unit.end_to_end_harness import make_model, node, tensor
from tests.unit.lowering_harness import normal

import ingot
import ingot_runtime

BLOCKS = ("stem", "body", "join", "mean", "dense", "end")
X = np.random.default_rng(5).standard_normal((2, 8, 10, 10)).astype(np.float32)


def network() -> ModelProto:
    """Six blocks: two convolutions, a residual sum, a mean, a dense layer, softmax."""
    nodes = [
        node("Conv", "x w0", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", "b c", "d"),
        node("GlobalAveragePool", "d", "e"),
        node("Flatten", "e", "f"),
        node("Gemm", "f w2 b2", "g"),
        node("Softmax", "g", "y"),
    ]
    for each, block in zip(nodes, ("stem", "stem", "body", "join", "mean", "mean", "dense", "end"), strict=True):
        each.name = f"/{block}/{each.op_type}"
    weights = {"w0": normal(0, 8, 8, 3, 3), "w1": normal(1, 8, 8, 3, 3), "w2": normal(2, 8, 5), "b2": normal(3, 5)}
    return make_model(nodes, [tensor("x", list(X.shape))], [tensor("y", [2, 5])], weights)


@pytest.fixture(scope="module")
def expected() -> bytes:
    """What the host alone gives."""
    return bytes(ingot_runtime.load(ingot.compile(network()).to_bytes()).run({"x": X})["y"].tobytes())


def results(places: Sequence[str], devices: dict[str, str]) -> set[bytes]:
    """The outputs of a placement, native and stepped, first and second call."""
    place = {f"/{block}/*": device for block, device in zip(BLOCKS, places, strict=True)}
    bundle = ingot.compile(network(), devices=devices, place=place).to_bytes()
    found: set[bytes] = set()
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            found |= {session.run({"x": X})["y"].tobytes() for _ in range(2)}
    return found


@pytest.mark.parametrize(
    "places",
    [
        ("acc",) * 6,
        ("host", "acc", "host", "acc", "host", "acc"),
        ("acc", "host", "acc", "host", "acc", "host"),
        ("host", "host", "host", "acc", "acc", "acc"),
    ],
)
def test_some_placements(places: Sequence[str], expected: bytes) -> None:
    """All on the device, in turns, one cut."""
    assert results(places, {"acc": "null"}) == {expected}


def test_two_devices(expected: bytes) -> None:
    """``null:0`` and ``null:1`` have memory apart: what crosses is copied."""
    devices = {"acc": "null:0", "other": "null:1"}
    assert results(("acc", "other", "acc", "other", "host", "other"), devices) == {expected}


@pytest.mark.slow
def test_all_placements(expected: bytes) -> None:
    """2^6 of them."""
    for places in itertools.product(("host", "acc"), repeat=6):
        assert results(places, {"acc": "null"}) == {expected}, places


def test_open_sizes(expected: bytes, tmp_path: Path) -> None:
    """Shapes that the call gives: the device's workspace follows them."""
    del expected
    model = make_model(
        [node("MatMul", "x w", "a"), node("Softmax", "a", "b"), node("MatMul", "b v", "y")],
        [tensor("x", ["n", 16])], [tensor("y", ["n", 8])], {"w": normal(0, 16, 32), "v": normal(1, 32, 8)},
    )  # fmt: skip
    for each in model.graph.node:
        each.name = f"/{each.output[0]}"
    ingot.compile(model).save(tmp_path / "host.ingot")
    ingot.compile(model, devices={"acc": "null"}, place={"/b": "acc"}).save(tmp_path / "two.ingot")
    alone, two = (ingot_runtime.load(tmp_path / f"{name}.ingot") for name in ("host", "two"))
    for rows in (3, 1, 50, 0, 3):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
        assert alone.run({"x": x})["y"].tobytes() == two.run({"x": x})["y"].tobytes()
