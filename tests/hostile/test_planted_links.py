"""Links in the place of files that are about to be written: what they lead to stays as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.hostile.tiny import tiny_contents, tree_entry

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.command import main as device

PRECIOUS = b"precious"


def planted(out: Path, victim: Path, kind: str) -> None:
    """Plant a link where this process, or a program that takes its place, writes its outputs
    before they get their name."""
    victim.write_bytes(PRECIOUS)
    place = out.with_name(f"{out.name}.{os.getpid()}.part")
    if kind == "hard":
        place.hardlink_to(victim)
    else:
        place.symlink_to(victim)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_outputs_of_the_command(kind: str, bundle: Path, tmp_path: Path) -> None:
    """``--outputs`` of the loader in Python makes a file of its own."""
    out, victim = tmp_path / "y.npz", tmp_path / "victim"
    planted(out, victim, kind)
    assert device(["run", str(bundle), "--outputs", str(out)]) == 0
    assert victim.read_bytes() == PRECIOUS
    assert not out.is_symlink()
    assert {*tmp_path.iterdir()} == {out, victim}


@pytest.mark.native
@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_outputs_of_a_program(kind: str, bundle: Path, tmp_path: Path) -> None:
    """So does that of the loader in C."""
    program, out, victim = tmp_path / "m", tmp_path / "y.npz", tmp_path / "victim"
    assert main(["export", str(bundle), "--executable", "-o", str(program)]) == 0
    subprocess.run(
        [program, "--outputs", out],
        env={},
        check=True,
        preexec_fn=lambda: planted(out, victim, kind),  # the number of the program's process
    )
    assert victim.read_bytes() == PRECIOUS
    assert {*tmp_path.iterdir()} == {out, victim, program}
