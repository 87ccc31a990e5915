"""``ingot tune PROJECT``: bundles that name a tuning file are measured, each into its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal
from tests.json_schemas import checked
from tests.unit.cli.test_tune import FEED, MODEL, TARGET, Output, kinds

from ingot_build_rules.tools.cli.main import main

HEAD = "[model.m]\nsource = 'm.onnx'\n"


def bundle(name: str, *, targets: str = f"['{TARGET}']", more: str = "tuning = 'm.tune'") -> str:
    """A bundle of the project's file."""
    return f"[bundle.{name}]\nmodel = 'm'\ntargets = {targets}\n{more}\n"


def project(folder: Path, *bundles: str) -> Path:
    """A project of one model."""
    (folder / "m.onnx").write_bytes(MODEL.SerializeToString())
    (folder / "ingot.toml").write_text(HEAD + "".join(bundles), encoding="utf-8")
    return folder


def test_a_project_is_built_by_what_was_measured(tmp_path: Path, capsys: Output) -> None:
    """Of two bundles that agree one is measured, of several targets the best that runs here; one
    without a file is not. What the file said before, nonsense here, is not asked."""
    several = "['aarch64', 'x86-64-v2', 'x86-64-v3']"
    folder = project(
        tmp_path,
        bundle("a", targets=several),
        bundle("b", targets=several, more="tuning = 'm.tune'\nstrip = true"),
        bundle("c", more=""),
    )
    (folder / "m.tune").write_text("nonsense")
    assert main(["tune", str(folder), "--rounds", "2", "--json"]) == 0
    (report,) = checked("tune", capsys.readouterr().out)["bundles"]
    assert (report["bundle"], report["target"]) == ("a", TARGET)
    assert [layer["node"] for layer in report["layers"]] == ["first", 'se"cond']
    (folder / "ingot.toml").write_text(HEAD + bundle("a"), encoding="utf-8")
    assert main(["build", "-C", str(folder)]) == 0
    measured = {layer["node"]: layer["method"] for layer in report["layers"]}
    assert kinds(folder / "dist/a.ingot") == measured
    assert main(["tune", str(folder / "ingot.toml"), "--rounds", "2"]) == 0
    assert "m.tune: 2 layers with a choice of methods" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bundles", "words", "said"),
    [
        ((bundle("a", more=""),), (), "no bundle says where its tuning file lies"),
        ((bundle("a"),), ("--target", TARGET), "an option that is for a model"),
        ((bundle("a", targets="['riscv64']"),), (), "a bundle that cannot run here"),
        ((bundle("a", more="tuning = 'm.tune'\noptimize = 'size'"),), (), "size and measurements"),
        (
            (bundle("a"), bundle("b", more="tuning = 'm.tune'\nprecision = 'fast'")),
            (),
            "bundles 'a' and 'b' differ in model, target or options",
        ),
    ],
)
def test_what_cannot_be_measured(
    tmp_path: Path, capsys: Output, bundles: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    """It is refused before anything is compiled."""
    assert main(["tune", str(project(tmp_path, *bundles)), *words]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "m.tune").exists()


@pytest.mark.parametrize("kept", ["ingot.toml", "other.onnx", "m.onnx", "in.npz"])
def test_the_projects_own_files_are_kept(tmp_path: Path, capsys: Output, kept: str) -> None:
    """A tuning file that is one of them is refused, and those of other bundles are not written."""
    test = "[test.t]\nbundle = 'a'\ninputs = 'in.npz'\noutputs = 'out.npz'\n"
    other = "[model.other]\nsource = 'other.onnx'\n"
    own = bundle("b", more=f"tuning = '{kept}'")
    project(tmp_path, bundle("a"), own, other, test)
    for name in ("other.onnx", "in.npz", "out.npz"):
        (tmp_path / name).write_bytes(MODEL.SerializeToString())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["tune", str(tmp_path), "--rounds", "1"]) == 1
    told = capsys.readouterr().err
    assert "the output is an input of the command" in told
    assert kept in told
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("is_file", [False, True])
def test_inputs_fit_every_bundle(tmp_path: Path, capsys: Output, is_file: bool) -> None:
    """Those that do not fit the second one are refused before the first one's file is written."""
    changed = make_model(
        [node("Conv", "z w", "y", name="only", pads=[1, 1, 1, 1])],
        [tensor("z", [1, 64, 8, 8])],
        [tensor("y", None)],
        {"w": normal(0, 64, 64, 3, 3)},
    )
    other = "[model.other]\nsource = 'other.onnx'\n"
    second = bundle("b", more="tuning = 'b.tune'").replace("'m'", "'other'")
    project(tmp_path, bundle("a"), second, other)
    (tmp_path / "other.onnx").write_bytes(changed.SerializeToString())
    np.savez(tmp_path / "in.npz", x=FEED["x"])
    words = ["--inputs", str(tmp_path / "in.npz")] if is_file else ["--shape", "x=1x64x8x8"]
    assert main(["tune", str(tmp_path), "--rounds", "1", *words]) == 1
    assert "[bundle.b], " in capsys.readouterr().err
    assert not list(tmp_path.glob("*.tune"))
