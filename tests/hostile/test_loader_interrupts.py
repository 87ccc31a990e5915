"""Ctrl-C at any bytecode of load, run and close: nothing is left behind, and the next load
works."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hostile.tiny import tiny_contents, tree_entry

from ingot_artifacts.bundle.write import write_bundle

QUICK_POINTS, SLOW_POINTS = 120, 4000


def interrupted(path: Path, threads: int, points: int, seed: int) -> dict[str, int]:
    """Run the harness in a process of its own; return how its trials ended."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    script = Path(__file__).with_name("interrupts_harness.py")
    done = subprocess.run(
        [sys.executable, str(script), str(path), str(threads), str(points), str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[:-1]) == (0, []), (lines[:20], done.stderr[-2000:])
    word, good, ends = lines[-1].split(" ", 2)
    assert (word, good) == ("after", "True")
    counted: dict[str, int] = ast.literal_eval(ends)
    return counted


@pytest.mark.sweep(8)
@pytest.mark.parametrize("threads", [1, 4])
def test_interrupts_leave_nothing(tmp_path: Path, threads: int) -> None:
    """No descriptor, thread or mapping stays; what ends is the interrupt itself, or nothing where a
    finalizer swallows it."""
    write_bundle(tiny_contents(), tmp_path / "m.ingot", tree_entry)
    ends = interrupted(tmp_path / "m.ingot", threads, QUICK_POINTS, seed=threads)
    assert set(ends) <= {"interrupted", "done"}
    assert ends["interrupted"] > QUICK_POINTS // 2


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_many_interrupts_leave_nothing(tmp_path: Path, threads: int) -> None:
    """The same at thousands of bytecodes."""
    write_bundle(tiny_contents(), tmp_path / "m.ingot", tree_entry)
    ends = interrupted(tmp_path / "m.ingot", threads, SLOW_POINTS, seed=10 + threads)
    assert set(ends) <= {"interrupted", "done"}
