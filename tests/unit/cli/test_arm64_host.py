"""A machine with another kind of processor makes the same bytes: bundles, lock files; it finds its
own features, and runs what it makes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.arm64_host import Arm64
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import assert_close
from tests.harness.reproduce_harness import write_project
from tests.unit.backends.test_opencl_models import chain
from tests.unit.end_to_end.test_end_to_end_devices import network

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main

pytestmark = [pytest.mark.arm64, pytest.mark.slow]

TARGETS = ["x86-64-v3", "aarch64", "riscv64"]
_FEED = np.linspace(-1, 1, 3 * 12, dtype=np.float32).reshape(3, 12)
_MAKE = """
import json, pathlib, ingot, ingot_runtime
import numpy as np
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.targets.host_target import host_target
for name in {names}:
    ingot.compile(f"/work/{{name}}.onnx", targets={targets}).save(f"/work/{{name}}.ingot")
assert main(["build", "-C", "/work/project", "-q", "-j1", "--cache", "/work/cache"]) == 0
with ingot_runtime.load("/work/chain.ingot") as session:
    found = session.run({{"x": np.linspace(-1, 1, 36, dtype=np.float32).reshape(3, 12)}})["y"]
    told = [str(host_target()), session.loaded.variant.target, found.tolist()]
pathlib.Path("/work/told.json").write_text(json.dumps(told))
"""


def folded() -> ModelProto:
    """Functions of constants, which are computed while building; narrow types among them."""
    values = np.random.default_rng(4).uniform(0.1, 3, (5, 7)).astype(np.float32)
    nodes: list[NodeProto] = []
    names = ["x"]
    for op in ("Exp", "Log", "Sin", "Tanh", "Erf", "Sqrt", "Softmax"):
        nodes.append(node(op, "c", op))
        names.append(op)
    for to in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        nodes += [
            node("Cast", "c", f"n{to}", to=to),
            node("Cast", f"n{to}", f"w{to}", to=TensorProto.FLOAT),
        ]
        names.append(f"w{to}")
    nodes.append(helper.make_node("Sum", names, ["y"]))
    return make_model(nodes, [tensor("x", [5, 7])], [tensor("y", [5, 7])], {"c": values})


MODELS = {"chain": chain, "network": network, "folded": folded}


@pytest.fixture(scope="module")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Arm64:
    """The machine, with what it has made; INGOT_ARM64 names a folder that keeps it."""
    kept = os.environ.get("INGOT_ARM64")
    machine = Arm64(Path(kept) if kept else tmp_path_factory.mktemp("arm64"))
    for name, make in MODELS.items():
        (machine.work / f"{name}.onnx").write_bytes(make().SerializeToString())
    if not (machine.work / "project").exists():
        write_project(machine.work / "project")
    machine.run("-c", _MAKE.format(names=list(MODELS), targets=TARGETS))
    return machine


@pytest.mark.parametrize("name", MODELS)
def test_bundles_are_byte_equal(arm64: Arm64, name: str, tmp_path: Path) -> None:
    """For three architectures; one has constants that are folded."""
    there = arm64.work / f"{name}.ingot"
    ingot.compile(arm64.work / f"{name}.onnx", targets=TARGETS).save(tmp_path / "m")
    assert there.read_bytes() == (tmp_path / "m").read_bytes()


def test_a_project_is_byte_equal(arm64: Arm64, tmp_path: Path) -> None:
    """Bundle and lock file; what was made there is reproduced here."""
    write_project(tmp_path)
    assert main(["build", "-C", str(tmp_path), "-q", "-j1", "--cache", str(tmp_path / "c")]) == 0
    for name in ("net.ingot", "net.lock.json"):
        there = arm64.work / "project" / "dist" / name
        assert there.read_bytes() == (tmp_path / "dist" / name).read_bytes()
    bundle = arm64.work / "project" / "dist" / "net.ingot"
    assert main(["reproduce", str(bundle), "--source", str(tmp_path), "-q", "-j1"]) == 0


def test_it_runs_what_it_makes(arm64: Arm64) -> None:
    """Its own variant, with the numbers of this machine within rounding; its features are those
    that the kernel tells, as ``/proc/cpuinfo`` tells none."""
    machine, variant, found = json.loads((arm64.work / "told.json").read_text())
    assert machine.startswith("aarch64+")
    assert "asimddp" in machine
    assert variant == "aarch64"
    with ingot_runtime.load(arm64.work / "chain.ingot") as session:
        assert_close(session.run({"x": _FEED})["y"], np.asarray(found, np.float32), 1e-5)
