"""The course of a run as a trace, on the same time axis as those of builds.

In: what was recorded, what is known of the bundle's launches. Out: JSON. Not done here: recording
(``record_run``), the format of entries (``trace_entries``), writing it.

One lane for the phases of loads, one for whole calls, one per device for its launches under the
names of the model's nodes, one for copies, and more where copies ran at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ingot_build_rules.engine.events.trace_entries import Entry, TraceProcess, trace_text
from ingot_build_rules.tools.view.launch_rows import launch_rows, recorded_launches

if TYPE_CHECKING:
    from ingot_build_rules.tools.view.record_run import RunRecord
    from ingot_build_rules.tools.view.report_subject import ReportSubject
    from ingot_runtime.executor.vm import Step

_LOAD_LANE, _CALL_LANE, _FIRST_DEVICE_LANE = 1, 2, 3
_NAME_LETTERS_MAX = 60


def run_trace(record: RunRecord, subject: ReportSubject, process: TraceProcess) -> str:
    """Return the trace of a run of ``subject``; times count from when the process's do."""
    devices = [device.name for device in subject.plan.devices]
    copies_lane = _FIRST_DEVICE_LANE + len(devices)
    names = {_LOAD_LANE: "load", _CALL_LANE: "calls"}
    names |= {_FIRST_DEVICE_LANE + n: f"launches on {name}" for n, name in enumerate(devices)}
    steps = [step for call in record.calls for step in call.steps]
    rows = _rows_of_copies([step for step in steps if step.launch < 0])
    names |= {copies_lane + n: f"copies, {n + 1}" if n else "copies" for n in rows.values()}
    known = _known_launches(record, subject)
    entries = [process.named(), *process.lanes(names), *_whole(record, process)]
    for step in steps:
        if step.launch < 0:
            entries.append(_copy(step, devices, copies_lane + rows[id(step)], process))
        else:
            entries.append(_launch(step, known[step.launch], process))
    metadata = {name: subject.described[name] for name in ("model", "digest")}
    return trace_text(entries, {"target": record.variant, **metadata})


def _rows_of_copies(copies: list[Step]) -> dict[int, int]:
    """Identity of a copy -> its row: those that ran at the same time have rows of their own."""
    ends: list[float] = []
    rows: dict[int, int] = {}
    for step in sorted(copies, key=lambda step: step.started_seconds):
        free = [row for row, end in enumerate(ends) if end <= step.started_seconds]
        row = free[0] if free else len(ends)
        ends[row : row + 1] = [step.started_seconds + step.seconds]
        rows[id(step)] = row
    return rows


def _whole(record: RunRecord, process: TraceProcess) -> Iterator[Entry]:
    """Loads with their phases, and calls."""
    for phase in record.loads:
        ends = phase.started_seconds, phase.ended_seconds
        yield process.slice(_LOAD_LANE, phase.name, "load", *ends, {})
    for call in record.calls:
        ends = call.phase.started_seconds, call.phase.ended_seconds
        yield process.slice(_CALL_LANE, call.phase.name, "call", *ends, {})


def _known_launches(record: RunRecord, subject: ReportSubject) -> dict[int, dict[str, Any]]:
    """What is known of each launch that was stepped. Those in a branch that the sizes alone do not
    take have no costs."""
    recorded = recorded_launches(subject)
    known: dict[int, dict[str, Any]] = {
        launch: {"kernel": kernel, **(recorded[launch] if launch < len(recorded) else {})}
        for launch, kernel in record.kernels.items()
    }
    return known | {row["ordinal"]: row for row in launch_rows(subject) if row["step"] == "launch"}


def _launch(step: Step, known: Mapping[str, Any], process: TraceProcess) -> Entry:
    nodes = [name for name, *_ in known.get("nodes", [])]
    name = ", ".join(nodes) or str(known["kernel"])
    if len(name) > _NAME_LETTERS_MAX:
        name = name[: _NAME_LETTERS_MAX - 3] + "..."
    arguments: dict[str, Any] = {
        "launch": step.launch,
        "node_names": nodes,
        **{key: known.get(key) for key in ("kernel", "device", "writes", "operations")},
        "touched_bytes": known.get("bytes"),
    }
    if step.seconds > 0 and known.get("operations") is not None:
        arguments["gigaoperations_per_second"] = known["operations"] / step.seconds / 1e9
        arguments["gigabytes_per_second"] = known["bytes"] / step.seconds / 1e9
    lane, kind = _FIRST_DEVICE_LANE + step.device, str(known.get("kind") or "launch")
    ended = step.started_seconds + step.seconds
    return process.slice(lane, name, kind, step.started_seconds, ended, arguments)


def _copy(step: Step, devices: list[str], lane: int, process: TraceProcess) -> Entry:
    source, target = devices[step.source], devices[step.device]
    arguments = {
        "source": source,
        "destination": target,
        "size_bytes": step.size_bytes,
        "buffers": list(step.buffers),
    }
    ended = step.started_seconds + step.seconds
    name = f"{source} to {target}"
    return process.slice(lane, name, "copy", step.started_seconds, ended, arguments)
