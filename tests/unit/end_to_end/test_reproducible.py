"""The same model gives the same bundle, whoever compiles it, where, when and with how many workers
(acceptance 5)."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from tests.harness.build_harness import all_in_workers, make_home
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal

import ingot

TARGETS = ("x86-64-v3", "aarch64")


def sample_model() -> ModelProto:
    """Some of everything that could bring disorder: several kernels, equal ones, packed and plain
    weights, symbols."""
    nodes = [
        node("Conv", "x w0", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("Conv", "r w1", "d", pads=[1, 1, 1, 1]),
        node("Conv", "d w1", "e", pads=[1, 1, 1, 1]), node("Add", "e r", "s"), node("GlobalAveragePool", "s", "g"),
        node("Flatten", "g", "f"), node("MatMul", "f w2", "m"), node("Softmax", "m", "y"),
    ]  # fmt: skip
    constants = {"w0": normal(0, 8, 3, 3, 3), "w1": normal(1, 8, 8, 3, 3), "w2": normal(2, 8, 5)}
    return make_model(nodes, [tensor("x", ["n", 3, "h", 9])], [tensor("y", ["n", 5])], constants)


@dataclass(frozen=True)
class Surroundings:
    """All that must not matter: where the model lies and how it is called, and the process around
    the compiler."""

    folder: str
    spelling: str  # of the model's path, from the folder
    workers: int
    umask: int
    environment: dict[str, str] = field(default_factory=dict[str, str])


SURROUNDINGS = (
    Surroundings("a", "model.onnx", 1, 0o022, {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C", "USER": "alice"}),
    Surroundings(
        "deep/b c", "../b c/./model.onnx", 2, 0o077,
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "USER": "bob", "LANG": "tr_TR.UTF-8"},
    ),
    Surroundings(
        "ü", "{absolute}/link.onnx", 2, 0o002,
        {"PYTHONHASHSEED": "4294967295", "TZ": "America/St_Johns", "LC_ALL": "de_DE.UTF-8", "SOURCE_DATE_EPOCH": "1"},
    ),
)  # fmt: skip


def compile_in(root: Path, place: Surroundings) -> bytes:
    """Compile by the command, in a process of its own."""
    folder, home = root / place.folder, root / f"home{place.workers}{place.umask}"
    folder.mkdir(parents=True)
    make_home(home)
    (folder / "model.onnx").write_bytes(sample_model().SerializeToString())
    (folder / "link.onnx").symlink_to("model.onnx")
    spelling = place.spelling.format(absolute=folder)
    arguments = [
        "-m",
        "ingot",
        "compile",
        spelling,
        "-o",
        "out.ingot",
        "-q",
        "-j",
        str(place.workers),
    ]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
    }
    path = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run(
        [
            sys.executable,
            *arguments,
            *(word for target in TARGETS for word in ("--target", target)),
        ],
        cwd=folder,
        env=inherited | {"PYTHONPATH": path, "HOME": str(home)} | place.environment,
        umask=place.umask,
        check=True,
    )
    return (folder / "out.ingot").read_bytes()


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The bundle of every surroundings."""
    root = tmp_path_factory.mktemp("surroundings")
    return [compile_in(root, place) for place in SURROUNDINGS]


@pytest.mark.broad
def test_one_digest(bundles: list[bytes]) -> None:
    """Three folders, spellings, homes, hash seeds, time zones, locales and umasks, one and two
    workers: one file."""
    assert len(set(bundles)) == 1


@pytest.mark.broad
def test_a_model_in_memory_gives_the_same_kernels(
    bundles: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python, from bytes and from a message, twice in one process: the same file as by the
    command."""
    model = sample_model()
    all_in_workers(monkeypatch)
    for given in (model, model.SerializeToString()):
        assert ingot.compile(given, targets=TARGETS[::-1], workers=2).to_bytes() == bundles[0]


@pytest.mark.broad
def test_no_trace_of_the_machine(bundles: list[bytes], tmp_path: Path) -> None:
    """No path, user or home in any byte."""
    traces = [str(tmp_path.parent), os.path.expanduser("~") + "/", "alice", "home1", "model.onnx"]
    traces += [str(Path(__file__).parents[3]), "ingot-link-"]
    assert [trace for trace in traces if trace.encode() in bundles[0]] == []


def test_other_weights_change_weights_alone() -> None:
    """Code depends on the graph and never on a weight's bytes: both bundles differ, their kernels
    do not."""
    first, second = sample_model(), sample_model()
    weights = second.graph.initializer[0]
    weights.CopyFrom(numpy_helper.from_array(normal(9, 8, 3, 3, 3), weights.name))
    left, right = (ingot.compile(model, targets=["x86-64-v3"]) for model in (first, second))
    assert left.text("library") == right.text("library")
    assert left.to_bytes() != right.to_bytes()
    assert np.frombuffer(left.to_bytes(), np.uint8).size == len(right.to_bytes())
