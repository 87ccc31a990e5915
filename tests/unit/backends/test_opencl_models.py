"""Whole models on an OpenCL device, and split between host, ``cpu:1`` and ``opencl``: the results
of the host alone within rounding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import assert_close, normal
from tests.unit.end_to_end.test_end_to_end_devices import BLOCKS, X, network
from tests.unit.end_to_end.test_models import RELATIVE_ERROR_MAX, STATIC, Cases

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import UnsupportedError

TARGET = "x86-64-v2"
FOUR = ("first", "second", "third", "fourth")
_ERROR_MAX = 1e-5
_QUICK = ("resnet",)


@pytest.mark.broad
@pytest.mark.parametrize(
    "model",
    [model if model in _QUICK else pytest.param(model, marks=pytest.mark.slow) for model in STATIC],
)
@pytest.mark.opencl
def test_architecture_is_right(model: str, tmp_path: Path) -> None:
    """Every node on the device gives PyTorch's outputs; none is refused."""
    cases = Cases(model, dynamic=False)
    ingot.compile(cases.path, targets=[TARGET], devices={"acc": "opencl"}, place={"*": "acc"}).save(
        tmp_path / "m.ingot"
    )
    check_architecture(tmp_path / "m.ingot", cases)


def check_architecture(path: Path, cases: Cases) -> None:
    """A bundle gives the outputs of PyTorch, and its device was launched."""
    with ingot_runtime.load(path) as session:
        for feed, expected in zip(cases.feeds, cases.expected, strict=True):
            result = session.run(feed)
            for name, array in expected.items():
                assert_close(array, result[name], RELATIVE_ERROR_MAX)
        assert session.device_counts().launches["acc"] > 0


@pytest.mark.parametrize(("kind", "target"), [("opencl", TARGET), ("cuda", "x86-64-v3")])
def test_control_flow_is_refused_by_name(kind: str, target: str) -> None:
    """What only the host can run is refused with the node's name, not moved there."""
    branch = helper.make_graph([node("Neg", "x", "z")], "branch", [], [tensor("z", [3])])
    chosen = node("If", "c", "y", then_branch=branch, else_branch=branch)
    chosen.name = "/choice"
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    model = make_model([chosen], [tensor("x", [3]), flag], [tensor("y", [3])], {})
    with pytest.raises(UnsupportedError, match="/choice"):
        ingot.compile(model, targets=[target], devices={"acc": kind}, place={"*": "acc"})


def test_all_architectures_are_there() -> None:
    """None is left out."""
    assert len(STATIC) >= 28


def chain() -> ModelProto:
    """Four blocks: dense, softmax, dense, a residual sum."""
    nodes = [
        node("Gemm", "x w0 b0", "a"),
        node("Softmax", "a", "b"),
        node("MatMul", "b w1", "c"),
        node("Add", "c x", "y"),
    ]
    for each, block in zip(nodes, FOUR, strict=True):
        each.name = f"/{block}/{each.op_type}"
    weights = {"w0": normal(0, 12, 20), "b0": normal(1, 20), "w1": normal(2, 20, 12)}
    return make_model(nodes, [tensor("x", [3, 12])], [tensor("y", [3, 12])], weights)


def result(
    model: ModelProto, x: Array, blocks: Sequence[str], places: Sequence[str]
) -> tuple[Array, int]:
    """The output of a placement, and how many launches the OpenCL device had."""
    devices = {"acc": "opencl", "aside": "cpu:1"}
    place = {f"/{block}/*": device for block, device in zip(blocks, places, strict=True)}
    bundle = ingot.compile(model, targets=[TARGET], devices=devices, place=place).to_bytes()
    with ingot_runtime.load(bundle) as session:
        found = session.run({"x": x})["y"]
        launches = session.device_counts().launches.get("acc", 0)
    return found, launches


def check_placements(
    model: ModelProto, x: Array, blocks: Sequence[str], all_places: Sequence[Sequence[str]]
) -> None:
    """Each agrees with the host alone, and runs where it says."""
    alone, _ = result(model, x, blocks, ("host",) * len(blocks))
    for places in all_places:
        found, launches = result(model, x, blocks, places)
        assert_close(alone, found, _ERROR_MAX)
        assert (launches > 0) == ("acc" in places), places


@pytest.mark.opencl
def test_some_placements() -> None:
    """In turns over the host and an OpenCL device, and over three devices."""
    check_placements(network(), X, BLOCKS, [("host", "acc") * 3])
    x = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
    check_placements(chain(), x, FOUR, [("acc", "aside", "acc", "host")])


@pytest.mark.slow
@pytest.mark.opencl
def test_every_placement_of_six_blocks_over_two_devices() -> None:
    """2^6 of them."""
    check_placements(network(), X, BLOCKS, list(itertools.product(("host", "acc"), repeat=6)))


@pytest.mark.slow
@pytest.mark.opencl
def test_every_placement_of_four_blocks_over_three_devices() -> None:
    """3^4 of them."""
    x = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
    places = list(itertools.product(("host", "aside", "acc"), repeat=4))
    check_placements(chain(), x, FOUR, places)


@pytest.mark.opencl(devices=2)
def test_two_devices_of_the_kind() -> None:
    """What crosses from one to the other is copied by way of the host."""
    places = {"/first/*": "one", "/second/*": "other", "/third/*": "one", "/fourth/*": "other"}
    devices = {"one": "opencl:0", "other": "opencl:1"}
    x = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
    bundle = ingot.compile(chain(), targets=[TARGET], devices=devices, place=places).to_bytes()
    alone, _ = result(chain(), x, FOUR, ("host",) * 4)
    with ingot_runtime.load(bundle) as session:
        assert_close(alone, session.run({"x": x})["y"], _ERROR_MAX)
        edges = session.device_counts().copies
    assert edges["one", "other"][0] == 2
    assert edges["other", "one"][0] == 1


@pytest.mark.opencl
@pytest.mark.broad
def test_the_commands_work_on_such_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """verify, and report, which shows each kernel."""
    places = {"/second/*": "acc"}
    made = ingot.compile(chain(), targets=[TARGET], devices={"acc": "opencl"}, place=places)
    path = str(tmp_path / "m.ingot")
    made.save(path)
    assert main(["verify", path]) == 0
    assert main(["report", path, "-o", str(tmp_path / "r.html")]) == 0
    assert capsys.readouterr().err == ""
