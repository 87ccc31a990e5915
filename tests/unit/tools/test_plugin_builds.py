"""A project with plug-ins, in processes of its own: what an edit runs again, who is told what, and
that a file alone runs no code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.harness.plugin_harness import EXAMPLES, chain, compiled

import ingot_runtime
from ingot_build_rules.tools.check.self_check import check_bundle
from ingot_compiler.ir.errors import PluginError


def _ingot(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder, over a cache beside it."""
    environment = {
        **os.environ,
        "INGOT_CACHE": str(folder.parent / "cache"),
        "XDG_STATE_HOME": str(folder.parent / "state"),
    }
    command = [sys.executable, "-m", "ingot", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def _ran(folder: Path) -> dict[str, int]:
    """Rule -> how many of its actions a build ran."""
    found = _ingot(folder, "build", "--json")
    assert found.returncode == 0, found.stderr
    rules = json.loads(found.stdout.splitlines()[-1])["rules"]
    return {name: count["ran"] for name, count in rules.items() if count["ran"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The example, copied, with its model."""
    folder = tmp_path / "plugin"
    subprocess.run([sys.executable, str(EXAMPLES / "make_project.py"), str(folder)], check=True)
    return folder


@pytest.mark.slow
def test_an_edit_runs_what_depends_on_it(project: Path) -> None:
    """The library alone for its C, claims alone for ``claim.py``; the model in the declined bundle
    has the host's kernels, and both compute the same."""
    assert {"claim": 2, "lower_claimed": 1, "make_library": 1}.items() <= _ran(project).items()
    assert _ran(project) == {}
    source = project / "accelerator" / "kernels.c"
    source.write_text(source.read_text() + "\n/* once more */\n")
    why = _ingot(project, "why", "blocks").stdout
    assert "file accelerator/kernels.c changed" in why
    assert _ingot(project, "why", "declined").stdout.startswith("declined: up to date")
    assert _ran(project) == {"make_library": 1}
    claim = project / "accelerator" / "claim.py"
    claim.write_text(claim.read_text() + "\n# once more\n")
    assert _ran(project) == {"claim": 1}
    source.write_text(source.read_text().replace("0.0f", "0.5f"))
    assert _ran(project) == {"make_library": 1, "join_libraries": 1, "link": 1, "bundle": 1}
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16)
    sessions = [
        ingot_runtime.load(project / f"dist/{name}.ingot") for name in ("blocks", "declined")
    ]
    changed, host = (session.run({"x": x})["y"] for session in sessions)
    assert not np.allclose(changed, host)
    source.write_text(source.read_text().replace("0.5f", "0.0f"))
    _ran(project)
    again = ingot_runtime.load(project / "dist/blocks.ingot").run({"x": x})["y"]
    np.testing.assert_allclose(again, host, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_bundle_of_a_plugin_is_reproduced_with_it_alone(project: Path) -> None:
    """Without the plug-in the error says which one it was; nothing of it has run."""
    assert _ingot(project, "build", "blocks", "-q").returncode == 0
    arguments = ("reproduce", "dist/blocks.ingot", "--source", ".")
    target = project / "accelerator" / "target.py"
    target.write_text(target.read_text() + "\nprint('it runs')\n")
    refused = _ingot(project, *arguments)
    assert refused.returncode == 1
    assert "the bundle was made with plug-in accelerator" in refused.stderr
    assert "--plugin accelerator.target:TARGET" in refused.stderr
    assert "it runs" not in refused.stdout + refused.stderr
    for words in (("inspect",), ("verify",), ("run",)):
        shape = ("--shape", "x=2x16") if words == ("run",) else ()
        done = _ingot(project, *words, "dist/blocks.ingot", *shape)
        assert done.returncode == 0, done.stderr
        assert "it runs" not in done.stdout
    done = _ingot(project, *arguments, "--plugin", "accelerator.target:TARGET")
    assert done.returncode == 0, done.stderr
    assert "reproduced: " in done.stdout


@pytest.mark.slow
def test_errors_of_a_project_name_its_line(project: Path) -> None:
    """A plug-in that is not there, by the line of its bundle; without a traceback."""
    file = project / "ingot.toml"
    file.write_text(file.read_text().replace("accelerator.target", "accelerators.target"))
    failed = _ingot(project, "build")
    assert failed.returncode == 1
    assert "no such plug-in" in failed.stderr
    assert "ingot.toml:11, [bundle.blocks]" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.sweep(60)
@pytest.mark.parametrize("plugin", ["RANDOM", "UNORDERED"])
def test_check_asks_twice(plugin: str, tmp_path: Path) -> None:
    """A plug-in that gives something else the second time, or in another process, is found by the
    self-check."""
    made = compiled(chain("Neg", "Relu"), f"bad_plugins:{plugin}")
    made.save(str(tmp_path / "a.ingot"))
    with pytest.raises(PluginError) as caught:
        check_bundle(made, str(tmp_path / "a.ingot"), None)
    assert caught.value.what == "another result the second time in plug-in bad"
    assert caught.value.where == "plug-in bad, rule claim"


def test_check_finds_a_wrong_kernel(tmp_path: Path) -> None:
    """What a library computes is compared with the ops that it stands for, by their names."""
    made = compiled(chain("Neg", "Relu", "Tanh"), "IMAGE")
    made.save(str(tmp_path / "a.ingot"))
    report = check_bundle(made, str(tmp_path / "a.ingot"), None).plain()
    assert not report["passed"]
    assert "/relu1" in str(report["first_difference"])
