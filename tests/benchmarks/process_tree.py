"""Memory of a command: the peak of a whole process tree, each shared page counted once.

In: a command. Out: seconds, peak bytes. Not done here: judging them.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

_INTERVAL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """``peak_pss_bytes``: proportional set size, summed over the tree, sampled every 50 ms."""

    seconds: float
    peak_pss_bytes: int
    output: str


def run_measured(command: Sequence[str]) -> Measured:
    """Run ``command`` and sample its tree until it ends.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(pss_bytes(pid) for pid in tree_of(process.pid)))
        time.sleep(_INTERVAL_SECONDS)
    seconds = time.perf_counter() - started
    assert process.stdout is not None
    output = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), output)
    return Measured(seconds, peak, output)


def tree_of(root: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            parent = _parent(int(entry))
            parents.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents.get(pid, [])
    return found


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process, 0 when it is gone."""
    return _rollup(pid, "Pss:")


def rss_bytes(pid: int) -> int:
    """Return the resident set size of a process, 0 when it is gone."""
    return _rollup(pid, "Rss:")


def _rollup(pid: int, field: str) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
