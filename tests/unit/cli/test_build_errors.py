"""Errors that ``ingot build`` tells: one fault of many targets once, in the words of a project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.harness.build_harness import Workbench, chain

from ingot_build_rules.tools.cli.main import main

NAMES = [f"m{number:02}" for number in range(24)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """Bundles of one model, in a project that is not built; the current folder is its own."""
    made = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    made.project(dict.fromkeys(NAMES, chain([4, 8, 4])))
    monkeypatch.chdir(made.folder)
    return made


def test_one_fault_of_many_bundles_is_told_once(
    bench: Workbench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing can be written, the error names the bundles that it stopped, some by name; one
    that is wrong in another way has its own."""
    bench.write("dist", "")
    (bench.folder / "m07.onnx").unlink()
    assert main(["build", "-j1", "--keep-going", "-q"]) != 0
    errors = capsys.readouterr().err
    assert errors.count("error: cannot write") == 1
    assert "where: bundle 'm00', " in errors
    assert "; likewise bundle 'm01', bundle 'm02', " in errors
    assert "bundle 'm20', bundle 'm21', 2 more\n" in errors
    assert errors.count("error: ") == 2


def test_options_are_keys(bench: Workbench, capsys: pytest.CaptureFixture[str]) -> None:
    """What an option of ``compile`` would say is told as a line of ``ingot.toml``."""
    text = (bench.folder / "ingot.toml").read_text()
    (bench.folder / "ingot.toml").write_text(f'{text}shape.x = "7"\n')
    assert main(["build", "-j1", "-q", NAMES[-1]]) == 1
    errors = capsys.readouterr().err
    assert f"where: bundle '{NAMES[-1]}', shape.x = \"7\"" in errors
    assert 'write shape.x = "' in errors
    assert "--" not in errors
