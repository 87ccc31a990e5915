"""Other x86-64 processors: each serves what it can, with the bits of this machine, or refuses by
name; nothing ends by an illegal instruction.

qemu-user plays them: what CPUID says, and an illegal instruction for what it does not say. It has
no AVX-512 and no AMX: processors that have them are played without, and variants for them are never
taken. What those bits do to the choice is tested without it (``test_runtime_choose``).
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto
from tests.harness import quantized_models
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal
from tests.harness.qemu_harness import Foreign, emulator
from tests.harness.quantized_models import Scheme
from tests.unit.backends.test_opencl_models import chain
from tests.unit.end_to_end.test_end_to_end_devices import X, network
from tests.unit.ir.test_quantized_models import sample

import ingot
import ingot_runtime
from ingot_runtime.format.features import LEVELS
from ingot_runtime.npz import write_npz

pytestmark = pytest.mark.cpus

V2, V3, V4 = "x86-64-v2", "x86-64-v3", "x86-64-v4"
# What qemu plays, and the level that it has there. Genoa is one that it knows by its numbers alone.
CPUS = {
    "Nehalem": V2, "Westmere": V2, "SandyBridge": V2, "Haswell": V3, "Skylake-Server": V3,
    "Icelake-Server": V3,
    "max,vendor=GenuineIntel,family=6,model=143": V3,  # Sapphire Rapids, by its numbers likewise
    "EPYC-Rome": V3, "EPYC-Milan": V3,
    "EPYC-Milan,family=25,model=17": V3,  # Genoa
    "max": V3, "max,family=26,model=68": V3, "max,family=6,model=255": V3,
    "max,family=99,model=1": V3,
    "max,vendor=NobodyKnows1,family=40": V3,
}  # fmt: skip
# The features of the levels, as qemu calls them.
_SPELLED = {"lahf": "lahf-lm", "lzcnt": "abm"}


def halves() -> ModelProto:
    """Narrow floats: converted by instructions where there are some, by code elsewhere."""
    nodes = [
        node("Cast", "x", "h", to=TensorProto.FLOAT16),
        node("Exp", "h", "e"),
        node("Cast", "e", "f", to=TensorProto.BFLOAT16),
        node("Sqrt", "f", "s"),
        node("Cast", "s", "y", to=TensorProto.FLOAT),
    ]
    return make_model(nodes, [tensor("x", [5, 33])], [tensor("y", [5, 33])], {})


def attention() -> ModelProto:
    """Products that are made at run time, and a softmax between them."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("MatMul", "x t", "p"),
        node("Softmax", "p", "q"),
        node("MatMul", "q x", "y"),
    ]
    return make_model(nodes, [tensor("x", [2, 19, 24])], [tensor("y", [2, 19, 24])], {})


MODELS = {
    "chain": (chain, normal(3, 3, 12)),
    "network": (network, X),
    "halves": (halves, normal(4, 5, 33)),
    "attention": (attention, normal(5, 2, 19, 24)),
    "bytes": (lambda: quantized_models.network(Scheme()), sample(3, 3, 12, 12)),
}


@dataclass(frozen=True, slots=True)
class Made:
    """Two bundles as programs, by the level below: one with all levels, one for v3 alone."""

    all_levels: Path
    v3: Path
    feed: dict[str, Array]

    def expected(self, target: str) -> dict[str, Array]:
        """What this machine gives with that variant."""
        with ingot_runtime.load(self.all_levels, variant=target) as session:
            return dict(session.run(self.feed))


@pytest.fixture(scope="module", params=MODELS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Each model."""
    make, x = MODELS[request.param]
    model, folder = make(), tmp_path_factory.mktemp(request.param)
    for name, targets in (("all", [V2, V3, V4]), ("v3", [V3])):
        ingot.compile(model, targets=targets).save(folder / f"{name}.ingot")
        Foreign.export(folder / f"{name}.ingot", "x86_64")
    return Made(folder / "all.ingot", folder / "v3.ingot", {model.graph.input[0].name: x})


def program(bundle: Path, cpu: str) -> Foreign:
    """It on a processor."""
    return Foreign((*emulator("x86_64", cpu), str(bundle.with_suffix(""))), bundle.parent)


@pytest.mark.parametrize("cpu", CPUS)
def test_a_processor_takes_its_level(made: Made, cpu: str) -> None:
    """Its bits are those of this machine for that variant, with 1 and 2 threads; where there is no
    other variant, a processor without AVX2 refuses by the names of what it lacks."""
    target, here = CPUS[cpu], program(made.all_levels, cpu)
    assert f"target {target}, " in here.start(["--describe"]).stdout
    for threads in ("1", "2"):
        found = here.run(made.feed, "--threads", threads)
        for name, array in made.expected(target).items():
            assert found[name].tobytes() == array.tobytes()
    done = program(made.v3, cpu).start(["--describe"])
    assert done.returncode == (0 if target == V3 else 5), done.stderr
    assert target == V3 or "x86-64-v3 lacks avx" in done.stderr


@pytest.mark.parametrize("feature", LEVELS[V3])
def test_a_processor_without_one_feature(made: Made, feature: str) -> None:
    """It takes the level below, or refuses; the feature is named."""
    cpu = f"Haswell,-{_SPELLED.get(feature, feature)}"
    refused = program(made.v3, cpu).start(["--describe"])
    assert refused.returncode == 5
    lacks = refused.stderr.partition("x86-64-v3 lacks ")[2].partition("\n")[0].split(", ")
    assert feature in lacks
    here = program(made.all_levels, cpu)
    if feature in LEVELS[V2]:
        done = here.start(["--describe"])
        assert done.returncode == 5
        assert f"{V2} lacks {feature}" in done.stderr
        return
    for name, array in made.expected(V2).items():
        assert here.run(made.feed)[name].tobytes() == array.tobytes()


def test_a_processor_below_all_levels(made: Made) -> None:
    """The first processors of the architecture are refused by the program, by name."""
    done = program(made.all_levels, "qemu64").start(["--describe"])
    assert done.returncode == 5
    assert f"{V2} lacks " in done.stderr


_LOAD = """
import sys, numpy as np, ingot_runtime
given = dict(np.load(sys.argv[2]))
for executor in ("aot", "vm"):
    with ingot_runtime.load(sys.argv[1], executor=executor, threads=2) as session:
        found = session.run(given)
        print(session.loaded.variant.target, *(array.tobytes().hex() for array in found.values()))
"""
_COMPILE = """
import sys, ingot
ingot.compile(sys.argv[1], targets=["native", "x86-64-v4"]).save(sys.argv[2])
"""


def python(cpu: str, *arguments: str) -> str:
    """What Python prints on a processor."""
    command = [*emulator("x86_64", cpu), sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("cpu", ["Nehalem", "Haswell", "EPYC-Rome", "max,family=99,model=1"])
def test_the_loader_in_python(made: Made, cpu: str) -> None:
    """It chooses likewise, natively and stepped."""
    given = made.all_levels.with_suffix(".npz")
    with open(given, "wb") as file:
        write_npz(file, made.feed)
    values = made.expected(CPUS[cpu]).values()
    expected = " ".join([CPUS[cpu], *(array.tobytes().hex() for array in values)])
    assert (
        python(cpu, "-c", _LOAD, str(made.all_levels), str(given)).split("\n")[:2] == [expected] * 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("cpu", ["Nehalem", "Haswell"])
def test_the_compiler(cpu: str, tmp_path: Path) -> None:
    """What runs while building is for the machine that builds; ``native`` is its level; the bytes
    are those of this machine."""
    (tmp_path / "m.onnx").write_bytes(chain().SerializeToString())
    python(cpu, "-c", _COMPILE, str(tmp_path / "m.onnx"), str(tmp_path / "there"))
    ingot.compile(tmp_path / "m.onnx", targets=[CPUS[cpu], V4]).save(tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
