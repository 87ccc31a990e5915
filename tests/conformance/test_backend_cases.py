"""The backend cases of the ``onnx`` package, from a saved bundle by the loader, against the list of
known failures."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance import coverage, known_failures, light
from tests.conformance.run_case import SAME_IN_C, Outcome

RUN = Path(__file__).parent / "run.py"
# Modules of node cases that are quick to collect and touch every kind of kernel, view and refusal.
MODULES = (
    "add", "argmax", "attention", "averagepool", "batch_normalization", "cast", "clip", "concat", "conv", "convtranspose", "cumsum",
    "einsum", "expand", "gather", "gelu", "gemm", "gridsample", "groupnormalization", "layernormalization", "loop", "matmul",
    "maxpool", "mod", "pad", "pow", "reducesum", "reshape", "resize", "scatternd", "slice", "softmax", "split", "tile",
    "topk", "transpose", "where",
)  # fmt: skip
SAMPLES = (12, pytest.param(48, marks=pytest.mark.broad), pytest.param(80, marks=pytest.mark.slow))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command: it forks, which this process, with its threads, must not."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(RUN), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("count", SAMPLES)
def test_a_fixed_sample_of_cases(count: int) -> None:
    """Every case of a fixed sample passes or fails as the list of known failures says; the quick
    suite takes the first 12 of the 80."""
    done = run("--modules", *MODULES, "--sample", str(count))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_all_cases(tmp_path: Path) -> None:
    """Every case passes or is on the list, and gives the same bits by the loader in C; none crashes;
    every refusal names an op or an element type."""
    results = tmp_path / "results.json"
    done = run("--json", str(results), "--check-coverage", "--in-c")
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = json.loads(results.read_text())
    assert len(outcomes) >= 1884
    same = [name for name, (_, detail) in outcomes.items() if detail == SAME_IN_C]
    assert len([name for name in same if name.startswith("node/")]) >= 1500
    assert [
        name for name, (category, _) in outcomes.items() if category in ("crash", "error")
    ] == []
    refused = [detail for category, detail in outcomes.values() if category == "refused"]
    assert [detail for detail in refused if "op " not in detail and "dtype " not in detail] == []


@pytest.mark.slow
@pytest.mark.parametrize("device", [pytest.param("opencl", marks=pytest.mark.opencl), "cuda"])
def test_node_cases_on_a_device(device: str, tmp_path: Path) -> None:
    """With every node there, at least 1,400 pass; the others are on the list of the host or on that
    of the device."""
    results = tmp_path / "results.json"
    done = run("--kinds", "node", "--device", device, "--json", str(results))
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = json.loads(results.read_text())
    counts = collections.Counter(category for category, _ in outcomes.values())
    assert counts["pass"] >= 1400, counts


def test_the_list_of_devices() -> None:
    """It is sorted as it would be written, shares no case with that of the host, and has nothing
    but control flow, which is refused: the back end has code for all else."""
    known = known_failures.read(known_failures.DEVICES_PATH)
    assert known
    assert not known.keys() & known_failures.read().keys()
    assert {category for category, _ in known.values()} == {"refused"}
    assert all("control flow" in reason for _, reason in known.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", light.NAMES)
def test_light_models(name: str) -> None:
    """Each light model with generated weights gives what onnx.reference gives."""
    assert light.relative_error(name) < light.RELATIVE_ERROR_MAX


def test_the_list_reads_back(tmp_path: Path) -> None:
    """The list of known failures is sorted as it would be written; no listed case crashes, three
    expect what is further from the truth than what they get."""
    known = known_failures.read()
    copy = tmp_path / "known_failures.txt"
    known_failures.write(known, str(copy))
    assert copy.read_text() == Path(known_failures.PATH).read_text()
    assert {category for category, _ in known.values()} <= {"refused", "wrong"}
    wrong = [name.split("_")[1] for name, (category, _) in known.items() if category == "wrong"]
    assert wrong == ["attention", "dft", "dft"]


def test_the_list_may_only_shrink(tmp_path: Path) -> None:
    """A listed case that passes, an unlisted one that fails and another kind of failure are
    problems; pruning drops."""
    path = str(tmp_path / "known.txt")
    known_failures.write(
        {"a": ("refused", "no a"), "b": ("refused", "no b"), "c": ("error", "no c")}, path
    )
    outcomes = {
        "a": Outcome("pass"),
        "b": Outcome("wrong", "1 differs"),
        "c": Outcome("error"),
        "d": Outcome("refused", "x"),
    }
    problems = known_failures.compare(outcomes, path)
    assert [problem.split(":")[0] for problem in problems] == ["a", "b", "d"]
    known_failures.prune(outcomes, path)
    assert sorted(known_failures.read(path)) == ["b", "c"]


def test_reasons_hold_for_many_cases() -> None:
    """A reason in the table names the op and no node, opset or element type of one case."""
    detail = "node 'n' (Y): op LSTM, domain ai.onnx, opset 22, dtype f32: no translation | node 'm': op If: x"
    assert coverage.reason_of(Outcome("refused", detail)) == "op LSTM: no translation"


_TASKS = """
import os, signal, sys, time
sys.path.insert(0, {root!r})
from tests.conformance.workers import run_forked
def work(name):
    if name == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hangs":
        time.sleep(3600)
    if name == "raises":
        raise ValueError("no")
    return dict(category="pass", detail=name)
for name, result in run_forked(["a", "dies", "b", "hangs", "c", "raises", "d"], work, 2, 5.0):
    print(name, result["category"], result["detail"].splitlines()[-1])
"""


def test_a_crash_costs_one_case() -> None:
    """A worker that dies, hangs or raises is reported as that, and every other task is done."""
    script = _TASKS.format(root=str(RUN.parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    lines = sorted(done.stdout.splitlines())
    assert lines == [
        "a pass a", "b pass b", "c pass c", "d pass d", f"dies crash {signal.SIGSEGV.name}",
        "hangs error not done after 5 seconds", "raises error ValueError: no",
    ]  # fmt: skip
