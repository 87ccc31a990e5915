"""The loader in C makes the system calls that ``docs/without-python.md`` lists, and no other: each
step runs under a filter that allows its row alone."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.tidy.source import ROOT
from tests.unit.runtime.test_c_native import PROGRAMS, built
from tests.unit.runtime.test_signatures import Owner, sign

import ingot
from ingot_build_rules.tools.cli.main import main

pytestmark = [pytest.mark.native, pytest.mark.gcc]
PAGE = ROOT / "docs" / "without-python.md"
# Of x86-64, where the filter runs.
NUMBERS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "mmap": 9, "mprotect": 10,
    "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "pread64": 17,
    "sched_yield": 24, "madvise": 28, "nanosleep": 35, "getpid": 39, "clone": 56, "execve": 59,
    "exit": 60, "fcntl": 72, "rename": 82, "unlink": 87, "readlink": 89, "arch_prctl": 158,
    "futex": 202, "sched_getaffinity": 204, "set_tid_address": 218, "clock_nanosleep": 230,
    "exit_group": 231, "openat": 257, "newfstatat": 262, "set_robust_list": 273, "getrandom": 318,
    "memfd_create": 319, "rseq": 334, "clone3": 435,
}  # fmt: skip
STEPS = {
    "load": "`ingot_load`",
    "load memory": "`ingot_load_memory`",
    "open": "`ingot_open`, `ingot_prepare`",
    "run": "`ingot_run`",
    "close": "`ingot_close`",
    "unload": "`ingot_unload`",
}
CHANGED = "after a change of the file's permissions, or a rename"
KEYS, OPEN_SIZES = "with keys", "with outputs whose size only the data decide"
THREADS, THREADS_RUN = "with own threads: load, open, close", "with own threads: run"
PROGRAM, PROGRAM_THREADS = "a program, with `--require-key`", "with threads"
PROGRAM_OUTPUTS = "with `--outputs`"


def listed() -> dict[str, tuple[set[str], set[str]]]:
    """What is always made, and what may be, of each row of the page's table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| step | system calls |") :].split("\n\n")[0].splitlines()[2:]
    rows = (line.strip("| ").split(" | ") for line in table)
    return {
        step: (
            set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", calls))),
            set(re.findall(r"`(\w+)`", " ".join(re.findall(r"\((.*?)\)", calls)))),
        )
        for step, calls in rows
    }


ROWS = listed()


def allowed(*steps: str) -> set[str]:
    return set[str]().union(*(calls for step in steps for calls in ROWS[step]))


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that makes one step under a filter."""
    path = tmp_path_factory.mktemp("confined") / "confined"
    return built(PROGRAMS / "confined.c", path, ROOT / "runtime" / "c" / "ingot.c")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "m.ingot"
    model = ROOT / "tests" / "models" / "resnet" / "static.onnx"
    ingot.compile(model, targets=["x86-64-v2"]).save(path)
    return path


def is_good(
    program: Path, step: str, calls: Iterable[str], *arguments: str | Path, fails: str = ""
) -> bool:
    """Whether a step works with these calls (and one that fails); False where another is made."""
    numbers = [str(NUMBERS[name]) for name in sorted({*calls, "exit_group"} - {fails})]
    if fails:
        numbers.append(f"-{NUMBERS[fails]}")
    if PROGRAM_OUTPUTS in step:
        step, numbers = "program", [*numbers, f"w{NUMBERS['open']}"]
        numbers.remove(str(NUMBERS["open"]))
    line = [program, step, ",".join(numbers), *arguments]
    done = subprocess.run(line, env={}, capture_output=True, check=False)
    assert done.returncode in (0, -signal.SIGSYS), (done.returncode, done.stderr)
    return done.returncode == 0


@pytest.mark.parametrize("step", STEPS)
def test_each_step_makes_the_calls_of_its_row(confined: Path, bundle: Path, step: str) -> None:
    """All of them, and no other; with threads, those of their row."""
    row = STEPS[step]
    always, _ = ROWS[row]
    assert is_good(confined, step, allowed(row), bundle, "1")
    spare = {name for name in always if is_good(confined, step, allowed(row) - {name}, bundle, "1")}
    assert not spare
    threads = THREADS_RUN if step == "run" else THREADS
    for _ in range(5):
        assert is_good(confined, step, allowed(row, threads), bundle, "2")


def test_keys(confined: Path, bundle: Path, tmp_path: Path) -> None:
    """Of a file, and of a bundle with signatures in the file beside it."""
    alice = Owner(tmp_path, "alice", 1)
    path = tmp_path / "m.ingot"
    path.write_bytes(bundle.read_bytes())
    sign(path, alice, "--detached")
    calls = allowed(STEPS["load"], KEYS)
    assert is_good(confined, "load", calls, path, "1", alice.public)
    for name in ROWS[KEYS][0]:
        assert not is_good(confined, "load", calls - {name}, path, "1", alice.public)


def test_signatures_beside_what_a_link_leads_to(
    confined: Path, bundle: Path, tmp_path: Path
) -> None:
    """They are looked for there."""
    alice = Owner(tmp_path, "alice", 1)
    (tmp_path / "there").mkdir()
    path, link = tmp_path / "there" / "m.ingot", tmp_path / "m.ingot"
    path.write_bytes(bundle.read_bytes())
    sign(path, alice, "--detached")
    link.symlink_to(path)
    calls = allowed(STEPS["load"], KEYS)
    assert is_good(confined, "load", calls, link, "1", alice.public)
    assert not is_good(confined, "load", calls - {"readlink"}, link, "1", alice.public)


def test_a_file_whose_record_changes(confined: Path, bundle: Path, tmp_path: Path) -> None:
    """Its weights are verified again."""
    path = tmp_path / "m.ingot"
    calls = allowed(STEPS["run"], CHANGED)
    for spare in ("", *ROWS[CHANGED][0]):
        path.write_bytes(bundle.read_bytes())
        found = is_good(confined, "run after a change", calls - {spare}, path, "1")
        assert found == (not spare), spare


def test_outputs_of_open_size(confined: Path, tmp_path: Path) -> None:
    """Their memory is taken during the call."""
    constants = {"start": np.array(0), "step": np.array(1), "more": np.array(5)}
    nodes = [node("Add", "x more", "limit"), node("Range", "start limit step", "y")]
    made = make_model(nodes, [tensor("x", [], 7)], [tensor("y", ["n"], 7)], constants)
    ingot.compile(made, targets=["x86-64-v2"]).save(tmp_path / "m.ingot")
    calls = allowed(STEPS["run"], OPEN_SIZES)
    assert is_good(confined, "run", calls, tmp_path / "m.ingot", "1")
    for name in ROWS[OPEN_SIZES][0]:
        assert not is_good(confined, "run", calls - {name}, tmp_path / "m.ingot", "1")


def test_without_memory_files(confined: Path, bundle: Path) -> None:
    """Where the system has none, code is copied, by no other call."""
    for step in ("load", "load memory"):
        assert is_good(confined, step, allowed(STEPS[step]), bundle, "1", fails="memfd_create")


def test_a_program(confined: Path, bundle: Path, tmp_path: Path) -> None:
    """What ``export --executable`` writes, from its first call to its last."""
    alice = Owner(tmp_path, "alice", 1)
    path, program = tmp_path / "m.ingot", tmp_path / "m"
    path.write_bytes(bundle.read_bytes())
    sign(path, alice, "--detached")
    assert main(["export", str(path), "--executable", "-o", str(program)]) == 0
    (tmp_path / "m.ingot.sig").rename(tmp_path / "m.sig")
    asked: tuple[str | Path, ...] = (program, "--require-key", alice.public)
    calls = allowed(PROGRAM)
    assert is_good(confined, "program", calls, *asked)
    for name in ROWS[PROGRAM][0] - {"exit_group"}:
        assert not is_good(confined, "program", calls - {name}, *asked), name
    assert is_good(confined, "program", allowed(PROGRAM, PROGRAM_THREADS), *asked, "--threads", "2")
    written: tuple[str | Path, ...] = (*asked, "--outputs", tmp_path / "y.npz")
    assert not is_good(confined, "program", calls, *written)
    assert is_good(confined, PROGRAM_OUTPUTS, allowed(PROGRAM, PROGRAM_OUTPUTS), *written)
    assert not is_good(confined, PROGRAM_OUTPUTS, calls | ROWS[PROGRAM_OUTPUTS][1], *written)
