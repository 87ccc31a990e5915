"""How long the command takes before it does anything, beyond an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

_RUNS = 25


def shortest_seconds(folder: Path, *commands: tuple[str, ...]) -> list[float]:
    """Processor seconds of each command at its best, taken in turn: they have one thread and wait
    for nothing, and whatever else the machine does only ever adds."""
    best = [float("inf")] * len(commands)
    for _ in range(_RUNS):
        for position, command in enumerate(commands):
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run(command, cwd=folder, capture_output=True, check=True)
            after = getrusage(RUSAGE_CHILDREN)
            used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            best[position] = min(best[position], used)
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "limit_ms"),
    [
        (("-c", "import ingot"), 20),
        (("-m", "ingot", "--help"), 40),
        (("-m", "ingot", "completion", "bash", "--words", "comp"), 30),
        (("-m", "ingot", "completion", "zsh", "--words", "compile", "--"), 30),
        (("-m", "ingot", "completion", "fish", "--words", "build", ""), 30),
    ],
)
def test_start(words: tuple[str, ...], limit_ms: float, tmp_path: Path) -> None:
    """An import, help, and completion of a verb, of an option, and of a name where there is no
    project."""
    nothing, command = shortest_seconds(
        tmp_path, (sys.executable, "-c", "pass"), (sys.executable, *words)
    )
    beyond_ms = (command - nothing) * 1e3
    print(f"{' '.join(words)}: {beyond_ms:.1f} ms beyond python -c pass")
    assert beyond_ms <= limit_ms
