"""``ingot export --module-archive``: the layout and the metadata of the Model Library Format, the
same bytes from the same bundles, objects and sources that another compiler takes."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.hostile.model_builder import model, value

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.tools.cli.main import main

TARGET = "x86-64-v3"
X = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)


def layers() -> ModelProto:
    """Two products; names as in ``c_programs/library.c``."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x:0", "w"], ["hidden"], "/first"),
        helper.make_node("Relu", ["hidden"], ["positive"], "/relu"),
        helper.make_node("MatMul", ["positive", "v"], ["y/1"], "/second"),
        helper.make_node("Softmax", ["y/1"], ["struct"], "/softmax"),
    ]
    weights = {
        "w": rng.standard_normal((64, 128), np.float32),
        "v": rng.standard_normal((128, 32), np.float32),
    }
    outputs = [value("y/1", [2, 32]), value("struct", [2, 32])]
    return model(nodes, [value("x:0", [2, 64])], outputs, weights)


def half() -> ModelProto:
    """One op: a second model for an archive."""
    node = helper.make_node("Mul", ["a", "w"], ["b"], "/half")
    halves = {"w": np.array(0.5, np.float32)}
    return model([node], [value("a", [3])], [value("b", [3])], halves)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    ingot.compile(layers(), targets=[TARGET], pools=["fast=4kB", "slow"]).save(folder / "net.ingot")
    ingot.compile(half(), targets=[TARGET]).save(folder / "half.ingot")
    return folder


def export(folder: Path, output: Path, *options: str) -> Path:
    arguments = ["export", str(folder / "net.ingot"), "--module-archive", "-o", str(output)]
    assert main([*arguments, "--also", str(folder / "half.ingot"), *options]) == 0
    return output


@pytest.fixture(scope="module")
def archive(bundles: Path) -> Path:
    return export(bundles, bundles / "models.tar")


def test_layout(archive: Path) -> None:
    """One set of folders, each file named after its model; nobody's, at no time, sorted."""
    with tarfile.open(archive) as tar:
        rows = tar.getmembers()
    files = [
        "codegen/host/include/{}.h", "codegen/host/lib/{}_lib0.o", "codegen/host/src/{}.code",
        "codegen/host/src/{}_lib0.c", "executor-config/graph/{}.graph",
        "parameters/{}.constants", "src/{}.program",
    ]  # fmt: skip
    wanted = [file.format(name) for file in files for name in ("half", "net")]
    assert [row.name for row in rows] == sorted([*wanted, "metadata.json"])
    assert {(row.uid, row.gid, row.uname, row.mtime, row.mode) for row in rows} == {
        (0, 0, "root", 0, 0o644)
    }


def test_metadata(archive: Path, bundles: Path) -> None:
    """Names, sizes and pools of both models; the bytes of ``main`` are the sums of its parts."""
    with tarfile.open(archive) as tar:
        text = tar.extractfile("metadata.json")
        assert text
        found = json.load(text)
        constants = tar.getmember("parameters/net.constants").size
    assert found["version"] == 7
    net, other = found["modules"]["net"], found["modules"]["half"]
    assert (net["model_name"], net["executors"], net["style"]) == ("net", ["aot"], "full-model")
    assert net["target"] == [TARGET]
    assert net["bundle_digest"] == describe_bundle(bundles / "net.ingot")["digest"]
    (device,) = net["memory"]["functions"]["main"]
    assert device["inputs"] == {
        "x_0": {"name": "x:0", "size": 512, "dtype": "float32", "shape": [2, 64]}
    }
    assert list(device["outputs"]) == ["struct_", "y_1"]
    assert device["io_size_bytes"] == 512 + 256 + 256
    assert device["constants_size_bytes"] == constants
    written = [pool for pool in net["memory"]["pools"] if not pool["is_constant"]]
    assert [pool["name"] for pool in written] == ["workspace", "fast", "slow"]
    assert device["workspace_size_bytes"] == sum(pool["size_bytes"] for pool in written)
    kernels = net["memory"]["functions"]["operator_functions"]
    assert len({kernel["function_name"] for kernel in kernels}) == len(kernels) >= 3
    assert other["memory"]["functions"]["main"][0]["io_size_bytes"] == 24


def test_launches_name_pools(archive: Path) -> None:
    """The graph has what a call launches, in order, with kernels of the metadata."""
    with tarfile.open(archive) as tar:
        text = tar.extractfile("executor-config/graph/net.graph")
        assert text
        launches = json.load(text)["launches"]
        program = tar.extractfile("src/net.program")
        assert program
        assert b"begin" in program.read()
    places = {buffer["in"] for launch in launches for buffer in launch["buffers"]}
    assert places == {"inputs", "outputs", "constants", "fast"}


def test_same_bytes_from_the_same_bundles(archive: Path, bundles: Path, tmp_path: Path) -> None:
    """Other folders, an empty cache: the same archive."""
    for name in ("net.ingot", "half.ingot"):
        shutil.copy(bundles / name, tmp_path / name)
    again = export(tmp_path, tmp_path / "again.tar", "--cache", str(tmp_path / "cache"))
    assert again.read_bytes() == archive.read_bytes()


def test_two_models_of_one_name(
    bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both files are named, and nothing is written."""
    shutil.copy(bundles / "half.ingot", tmp_path / "net.ingot")
    arguments = [
        "export",
        str(bundles / "net.ingot"),
        "--module-archive",
        "-o",
        str(tmp_path / "m.tar"),
    ]
    assert main([*arguments, "--also", str(tmp_path / "net.ingot")]) == 1
    told = capsys.readouterr().err
    assert "two models have one name" in told
    assert str(bundles / "net.ingot") in told
    assert not (tmp_path / "m.tar").exists()


@pytest.mark.gcc
def test_objects_and_sources_are_of_use(bundles: Path, tmp_path: Path) -> None:
    """A program is linked with the objects of both models, and with what gcc makes of the sources:
    the bits are the loader's."""
    archive = export(
        bundles, tmp_path / "m.tar", "--pool", "fast=internal", "--pool", "slow=internal"
    )
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    include, parts = tmp_path / "codegen/host/include", tmp_path / "codegen/host/src"
    source = Path(__file__).parents[1] / "c_programs" / "library.c"
    assembler = f"-Wa,-I{parts},-I{tmp_path / 'parameters'}"
    made: list[Path] = []
    for model_name in ("net", "half"):
        own = tmp_path / f"{model_name}.o"
        command: list[str | Path] = [
            "gcc",
            "-std=gnu11",
            "-O2",
            "-fPIC",
            "-I",
            include,
            assembler,
            "-c",
        ]
        subprocess.run([*command, parts / f"{model_name}_lib0.c", "-o", own], check=True)
        made.append(own)
    given = sorted((tmp_path / "codegen/host/lib").glob("*.o"))
    wanted = ingot_runtime.load(bundles / "net.ingot").run({"x:0": X})["y/1"].tobytes()
    for number, objects in enumerate((given, made)):
        program = tmp_path / f"program{number}"
        subprocess.run(["gcc", "-I", include, source, *objects, "-o", program], check=True)
        done = subprocess.run([program], input=X.tobytes(), capture_output=True, check=True)
        assert done.stdout == wanted
