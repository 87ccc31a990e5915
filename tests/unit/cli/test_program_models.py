"""Programs as models of projects and of ``ingot.compile``: their weights lie beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.harness.codegen_harness import Array
from tests.unit.cli.test_compile_program import write_npz

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import ModelError, UserError

EXAMPLE = Path(__file__).parents[3] / "examples" / "program.ingot-text"
PROJECT = """
[model.p]
source = "p.ingot-text"

[bundle.p]
model = "p"
targets = ["x86-64-v3"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of one program with its weights beside it."""
    shutil.copy(EXAMPLE, tmp_path / "p.ingot-text")
    write_npz(tmp_path / "p.npz", {"0": np.eye(8, dtype=np.float32)})
    (tmp_path / "ingot.toml").write_text(PROJECT)
    return tmp_path


def outputs(bundle: Path | bytes) -> dict[str, Array]:
    """What a bundle gives for inputs of ones."""
    session = ingot_runtime.load(bundle)
    assert session.devices != {"host": "host:0"}
    feed = {spec.name: np.ones([2 if isinstance(dim, str) else dim for dim in spec.shape], spec.dtype) for spec in session.inputs}  # fmt: skip
    return session.run(feed)


def build(folder: Path, *words: str) -> int:
    cache = str(folder / "cache")
    return main(["build", "-C", str(folder), "--cache", cache, *words])


def test_compile(folder: Path) -> None:
    """The path of a program is a model; other weights are another bundle with other numbers."""
    made = ingot.compile(folder / "p.ingot-text", targets="x86-64-v3", cache=folder / "cache")
    before = outputs(made.to_bytes())
    assert "matmul" in made.text("graph")
    write_npz(folder / "p.npz", {"0": 2 * np.eye(8, dtype=np.float32)})
    again = ingot.compile(folder / "p.ingot-text", targets="x86-64-v3", cache=folder / "cache")
    assert again.digest != made.digest
    assert any((array != before[name]).any() for name, array in outputs(again.to_bytes()).items())


def test_without_weights(folder: Path) -> None:
    """The constant is named by its number."""
    (folder / "p.npz").unlink()
    with pytest.raises(UserError, match="a constant without its weight") as found:
        ingot.compile(folder / "p.ingot-text", targets="x86-64-v3", cache=folder / "cache")
    assert "constant 0" in str(found.value)


def test_a_file_that_is_not_there(folder: Path) -> None:
    """It is told like that of any model."""
    with pytest.raises(UserError, match="no such model file"):
        ingot.compile(folder / "q.ingot-text", cache=folder / "cache")
    (folder / "q.ingot-text").write_text("def @main(")
    with pytest.raises(ModelError, match="line 1"):
        ingot.compile(folder / "q.ingot-text", cache=folder / "cache")


def test_what_the_text_says_already(folder: Path) -> None:
    """Devices, places, shapes and what to do where a device has no code."""
    path, cache = folder / "p.ingot-text", folder / "cache"
    for name, arguments in {
        "devices": {"devices": {"acc": "cpu:7"}},
        "place": {"place": {"*": "host"}},
        "shapes": {"shapes": {"x": "2x8"}},
        "fallback": {"fallback": "allow"},
    }.items():
        with pytest.raises(UserError, match=f"{name}.* with a program") as found:
            ingot.compile(path, cache=cache, **arguments)  # type: ignore[arg-type]  # of any of them
        assert str(path) in str(found.value.where)


@pytest.mark.broad
def test_build(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program is built once; again if its text or its weights have changed, and its bundle is made
    again from its record."""
    assert build(folder) == 0
    first = (folder / "dist" / "p.ingot").read_bytes()
    capsys.readouterr()
    assert build(folder) == 0
    assert "1 unchanged; 0 actions ran" in capsys.readouterr().out
    write_npz(folder / "p.npz", {"0": 2 * np.eye(8, dtype=np.float32)})
    assert build(folder) == 0
    second = (folder / "dist" / "p.ingot").read_bytes()
    assert first != second
    text = (folder / "p.ingot-text").read_text()
    (folder / "p.ingot-text").write_text(f"{text}\n\n")
    write_npz(folder / "p.npz", {"0": np.eye(8, dtype=np.float32)})
    assert build(folder) == 0
    assert (folder / "dist" / "p.ingot").read_bytes() == first
    assert outputs(folder / "dist" / "p.ingot")
    capsys.readouterr()
    assert main(["why", "-C", str(folder), "p"]) == 0
    assert "p: up to date" in capsys.readouterr().out
    bundle, source = str(folder / "dist" / "p.ingot"), str(folder / "p.ingot-text")
    assert main(["reproduce", bundle, "--source", source]) == 0


def test_build_that_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake in the text ends the build of that bundle, with its place."""
    (folder / "p.ingot-text").write_text('device "host" id 0 type "host"\ndef @main(')
    assert build(folder) == 1
    assert "line 2" in capsys.readouterr().err
