"""``ingot init``: a project for the models in a folder, which builds, and what it says of the
others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.json_schemas import checked
from tests.unit.cli.test_cli import assert_refused

from ingot_build_rules.tools.cli.building.project_draft import draft_project, portable_targets
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace.open_workspace import load_project


def write_model(path: Path, data: str = "") -> None:
    """Write a model of one addition; with ``data``, its constant lies in that file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(np.ones(4, np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    cast("Any", onnx).save(
        model, path, save_as_external_data=bool(data), location=data or None, size_threshold=0
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with models of all kinds."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "one.onnx")
    write_model(tmp_path / "deep" / "bert" / "model.onnx", "weights.bin")
    write_model(tmp_path / "a" / "same.v1.onnx")
    write_model(tmp_path / "b c" / "same.v1.onnx")
    write_model(tmp_path / "lost" / "lost.onnx", "lost.bin")
    (tmp_path / "lost" / "lost.bin").unlink()
    write_model(tmp_path / "star[1].onnx")
    write_model(tmp_path / ".hidden" / "no.onnx")
    write_model(tmp_path / "dist" / "no.onnx")
    (tmp_path / "torch.pt").touch()
    (tmp_path / "broken.onnx").write_text("no model")
    (tmp_path / "readme.txt").touch()
    return tmp_path


def test_a_project_is_made_and_can_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle for each model, for named targets; every other file that looks like a model has a
    reason."""
    assert main(["init", "--json"]) == 0
    told = checked("init", capsys.readouterr().out)
    assert {it["path"]: it["name"] for it in told["models"]} == {
        "one.onnx": "one",
        "a/same.v1.onnx": "a-same.v1",
        "b c/same.v1.onnx": "b-c-same.v1",
        "deep/bert/model.onnx": "bert",
    }
    assert told["models"][0]["inputs"] == [{"name": "x", "shape": ["batch", 4]}]
    left = {it["path"]: it["reason"] for it in told["left_out"]}
    assert left.keys() == {"broken.onnx", "lost/lost.onnx", "star[1].onnx", "torch.pt"}
    assert "not an ONNX model" in left["broken.onnx"]
    assert "expected lost/lost.bin" in left["lost/lost.onnx"]
    assert "wildcards" in left["star[1].onnx"]
    assert "torch.onnx.export" in left["torch.pt"]
    project = load_project(str(folder)).project
    assert {it.name for it in project.bundles} == {"one", "a-same.v1", "b-c-same.v1", "bert"}
    assert set(told["targets"]) <= {it.name for it in project.targets}


def test_it_says_what_it_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models with their inputs, what was left out, the target, the next command; the same text
    each time."""
    assert main(["init"]) == 0
    out = capsys.readouterr().out
    assert "x[batch, 4]" in out
    assert "left out:\n  broken.onnx: " in out
    assert "4 bundles for the target 'portable'" in out
    assert out.endswith("next: ingot build\n")
    first = (folder / "ingot.toml").read_text()
    os.chdir("/")
    assert main(["init", str(folder), "--force"]) == 0
    assert capsys.readouterr().out.endswith(f"next: ingot build -C {folder}\n")
    assert (folder / "ingot.toml").read_text() == first


def test_nothing_is_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A project that is there stays, unless ``--force`` is given; ``-n`` only prints."""
    (folder / "ingot.toml").write_text("# mine\n")
    assert_refused(capsys, ["init"], 1, "there is a project already", "--force")
    assert main(["init", "-n"]) == 0
    assert '[bundle.one]\nmodel = "one"\n' in capsys.readouterr().out
    assert (folder / "ingot.toml").read_text() == "# mine\n"
    assert main(["init", "--force"]) == 0
    assert "[bundle.one]" in (folder / "ingot.toml").read_text()


def test_folders_without_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No folder, nothing in it, nothing of use in it."""
    assert_refused(capsys, ["init", str(tmp_path / "no")], 1, "no such folder")
    assert_refused(capsys, ["init", str(tmp_path)], 1, "no models found")
    (tmp_path / "net.h5").touch()
    assert_refused(capsys, ["init", str(tmp_path)], 1, "no models found", "net.h5", "Keras")
    assert [path.name for path in tmp_path.iterdir()] == ["net.h5"]


@pytest.mark.parametrize("architecture", ["x86-64", "aarch64", "riscv64"])
def test_targets_of_each_architecture(architecture: str) -> None:
    """They have names, and the first one runs on most machines."""
    targets = portable_targets(architecture)
    assert next(iter(targets)) == "portable"
    text = draft_project([], targets)
    assert all(f"[target.{name}] # " in text for name in targets)
