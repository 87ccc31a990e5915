"""The examples for CMake and make: built once, left alone, and built again for exactly the files
that a model reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.tidy.source import ROOT

BIN = Path(sys.executable).parent
GENERATORS = ("Ninja", "Unix Makefiles")


def write_model(path: Path, data: str = "weights.bin", value: float = 1.0) -> None:
    """Write y = x + w, with w in the file ``data`` beside the model."""
    weight = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL
    )
    weight.external_data.add(key="location", value=data)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    (path.parent / data).write_bytes(np.full(4, value, np.float32).tobytes())


def run(folder: Path, *command: str) -> str:
    """Run a tool in ``folder`` with this environment's programs in front and a cache of its own;
    return its output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    environment |= {
        "PATH": f"{BIN}{os.pathsep}{environment['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def wait_for_a_tick(path: Path) -> None:
    """Make the file look older, as if the next edit came later: make sees whole ticks of the file
    system's clock alone."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**10))


class CMakeProject:
    """The CMake example in a folder whose name has a space."""

    def __init__(self, root: Path, generator: str) -> None:
        """Copy the example and configure it."""
        self.root = root / "a project"
        shutil.copytree(ROOT / "examples" / "cmake", self.root / "source")
        write_model(self.root / "source" / "two_layer.onnx")
        self.bundle = self.root / "build" / "two_layer.ingot"
        run(self.root, "cmake", "-S", "source", "-B", "build", "-G", generator)

    def build(self) -> str:
        """Build all; return what was done."""
        return run(self.root, "cmake", "--build", "build")


@pytest.mark.broad
@pytest.mark.parametrize("generator", GENERATORS)
def test_cmake_builds_again_for_the_files_that_a_model_reads(
    generator: str, tmp_path: Path
) -> None:
    """External data that CMake was never told of counts; nothing changed means nothing is run."""
    project = CMakeProject(tmp_path, generator)
    assert "Compiling two_layer.ingot" in project.build()
    first = project.bundle.read_bytes()
    assert "Compiling" not in project.build()
    for path in (project.root / "build").iterdir():
        wait_for_a_tick(path)
    (project.root / "source" / "weights.bin").write_bytes(np.full(4, 2.0, np.float32).tobytes())
    assert "Compiling two_layer.ingot" in project.build()
    assert project.bundle.read_bytes() != first
    assert "Compiling" not in project.build()


@pytest.mark.broad
@pytest.mark.parametrize("generator", GENERATORS)
def test_cmake_leaves_alone_what_depends_on_an_unchanged_bundle(
    generator: str, tmp_path: Path
) -> None:
    """A model that was only touched is looked at; the bundle keeps its time, and nothing after it
    is run."""
    project = CMakeProject(tmp_path, generator)
    assert "Digesting" in project.build()
    written = project.bundle.stat().st_mtime_ns
    later = written + 10**10
    os.utime(project.root / "source" / "two_layer.onnx", ns=(later, later))
    again = project.build()
    assert "Compiling two_layer.ingot" in again
    assert "Digesting" not in again
    assert project.bundle.stat().st_mtime_ns == written


def test_cmake_tells_mistakes_when_it_configures(tmp_path: Path) -> None:
    """A misspelled argument and a missing model are errors that name the call."""
    shutil.copy(ROOT / "examples" / "cmake" / "IngotBuild.cmake", tmp_path)
    head = "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\ninclude(IngotBuild.cmake)\n"
    for call, words in (
        (
            "ingot_add_bundle(a MODEL m.onnx TARGTS x)",
            "ingot_add_bundle(a): unknown arguments: TARGTS;x",
        ),
        ("ingot_add_bundle(a TARGETS x)", "ingot_add_bundle(a): MODEL is missing"),
    ):
        (tmp_path / "CMakeLists.txt").write_text(head + call + "\n")
        with pytest.raises(AssertionError) as found:
            run(tmp_path, "cmake", "-S", ".", "-B", "build", "-G", "Ninja")
        assert words in " ".join(str(found.value).split())


@pytest.mark.broad
def test_make_builds_again_for_the_files_that_a_model_reads(tmp_path: Path) -> None:
    """Two models side by side; a change builds one of them; a data file that is gone for good stops
    nothing."""
    shutil.copy(ROOT / "examples" / "make" / "Makefile", tmp_path)
    models = tmp_path / "models"
    write_model(models / "one.onnx", "one.bin")
    write_model(models / "two.onnx", "two.bin", 2.0)
    command = ("make", "-j2")
    assert run(tmp_path, *command).count("ingot compile") == 2
    assert "Nothing to be done for 'all'" in run(tmp_path, *command)
    for path in [*models.iterdir(), *(tmp_path / "build").iterdir()]:
        wait_for_a_tick(path)
    first = {name: (tmp_path / "build" / name).read_bytes() for name in ("one.ingot", "two.ingot")}
    write_model(models / "new.onnx", "one.bin", 3.0)
    (models / "new.onnx").unlink()
    done = run(tmp_path, *command)
    assert "models/one.onnx" in done
    assert "models/two.onnx" not in done
    assert (tmp_path / "build" / "one.ingot").read_bytes() != first["one.ingot"]
    assert (tmp_path / "build" / "two.ingot").read_bytes() == first["two.ingot"]
    for path in [*models.iterdir(), *(tmp_path / "build").iterdir()]:
        wait_for_a_tick(path)
    write_model(models / "two.onnx", "three.bin", 5.0)
    (models / "two.bin").unlink()
    assert "models/two.onnx" in run(tmp_path, *command)
    assert "Nothing to be done for 'all'" in run(tmp_path, *command)
