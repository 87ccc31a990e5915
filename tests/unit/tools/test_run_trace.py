"""``ingot run --trace``: load, calls, launches and copies on one time axis with builds, under the
names of the user's nodes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.json_schemas import checked
from tests.trace_format import checked_trace
from tests.unit.tools.test_report_data import HOSTILE, matmul_chain

import ingot
from ingot_build_rules.engine.events.trace_entries import TraceProcess
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view.load_phases import Phase
from ingot_build_rules.tools.view.record_run import RecordedCall, RunRecord
from ingot_build_rules.tools.view.report_subject import read_subject
from ingot_build_rules.tools.view.run_trace import run_trace
from ingot_runtime.executor.vm import Step

Entry = dict[str, Any]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose second product runs on a device of its own."""
    path = tmp_path_factory.mktemp("trace") / "m.ingot"
    ingot.compile(matmul_chain(), devices={"acc": "null"}, place={"second": "acc"}).save(path)
    return path


def lanes_of(path: Path) -> dict[str, list[Entry]]:
    """Return lane name -> its slices."""
    checked("trace", path.read_text())
    entries = checked_trace(path.read_text())
    names = {
        entry["tid"]: entry["args"]["name"] for entry in entries if entry["name"] == "thread_name"
    }
    found: dict[str, list[Entry]] = {name: [] for name in names.values()}
    for entry in entries:
        if entry["ph"] == "X":
            found[names[entry["tid"]]].append(entry)
    return found


def encloses(outer: Entry, inner: Entry) -> bool:
    """Whether one slice lies in another, up to what microseconds lose as floats."""
    ends = [entry["ts"] + entry["dur"] for entry in (outer, inner)]
    return bool(outer["ts"] <= inner["ts"] + 0.01 and inner["ts"] <= ends[1] <= ends[0] + 0.01)


def run(*words: str | Path) -> int:
    """Run the command."""
    return main(["run", *map(str, words)])


def test_what_a_trace_shows(bundle: Path, tmp_path: Path) -> None:
    """Phases lie in their load, launches and copies in their call, all in the time of the command;
    a launch tells nodes, kernel, device, operations and bytes, a copy its devices and bytes."""
    before = time.perf_counter()
    assert run(bundle, "--trace", tmp_path / "t.json", "--outputs", tmp_path / "a.npz") == 0
    after = time.perf_counter()
    lanes = lanes_of(tmp_path / "t.json")
    assert list(lanes) == ["load", "calls", "launches on host", "launches on acc", "copies"]
    loads = [entry for entry in lanes["load"] if entry["name"] == "load"]
    assert [entry["name"] for entry in lanes["calls"]] == [
        "first call", "second call", "first call, stepped", "second call, stepped",
    ]  # fmt: skip
    phases = [entry for entry in lanes["load"] if entry["name"] != "load"]
    assert {"verify the weights", "map and check the code"} <= {entry["name"] for entry in phases}
    assert all(any(encloses(load, phase) for load in loads) for phase in phases)
    launches = lanes["launches on host"] + lanes["launches on acc"]
    for step in launches + lanes["copies"]:
        assert any(encloses(call, step) for call in lanes["calls"][2:])
    for entry in launches:
        told = entry["args"]
        assert told["operations"] > 0
        assert told["touched_bytes"] > 0
        assert told["kernel"].startswith("k_")
    assert [entry["args"]["node_names"] for entry in lanes["launches on acc"]] == [["second"]] * 2
    assert any(HOSTILE in entry["args"]["node_names"] for entry in lanes["launches on host"])
    copied = {(e["name"], e["args"]["size_bytes"]) for e in lanes["copies"]}
    assert {name for name, _ in copied} == {"host to acc", "acc to host"}
    assert all(size > 0 for _, size in copied)
    whole = [entry for entries in lanes.values() for entry in entries]
    assert min(entry["ts"] for entry in whole) >= before * 1e6 - 1
    assert max(entry["ts"] + entry["dur"] for entry in whole) <= after * 1e6 + 1
    assert {entry["pid"] for entry in whole} == {os.getpid()}
    assert run(bundle, "--outputs", tmp_path / "b.npz") == 0
    with np.load(tmp_path / "a.npz") as one, np.load(tmp_path / "b.npz") as two:
        assert (one["y"] == two["y"]).all()


def test_a_stepped_run_has_no_native_calls(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--executor vm`` one session is loaded; the summary names the trace."""
    assert run(bundle, "--executor", "vm", "--trace", tmp_path / "t.json") == 0
    lanes = lanes_of(tmp_path / "t.json")
    assert [entry["name"] for entry in lanes["calls"]] == [
        "first call, stepped", "second call, stepped",
    ]  # fmt: skip
    assert [entry["name"] for entry in lanes["load"]].count("load") == 1
    assert f"trace in {tmp_path / 't.json'}" in capsys.readouterr().out


def test_a_bundle_without_names(bundle: Path) -> None:
    """A launch that the debug section says nothing of, and that the sizes alone do not lead to, has
    the name of its kernel and no costs."""
    subject = read_subject(bundle, None, {})
    subject.described["debug"].clear()
    step = Step(1.0, 0, launch=99, kernel=0)
    record = RunRecord(
        calls=[RecordedCall(Phase("first call, stepped", 0.0, 9.0), (step,))],
        kernels={99: "k_abc"},
    )
    entries = json.loads(run_trace(record, subject, TraceProcess("p")))["traceEvents"]
    (launch,) = [entry for entry in entries if entry["name"] == "k_abc"]
    assert launch["args"]["operations"] is None


@pytest.mark.parametrize(
    ("output", "said"),
    [("nowhere/t.json", "no such output folder"), ("m.ingot", "the output is an input")],
)
def test_errors(
    bundle: Path,
    output: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A bad place for the trace is refused before anything runs."""
    monkeypatch.chdir(bundle.parent)
    assert run(bundle.name, "--trace", output) == 1
    told = capsys.readouterr()
    assert said in told.err
    assert not told.out
