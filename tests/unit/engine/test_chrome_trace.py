"""The Chrome trace: one lane per job, the critical path marked, the same text for the same events."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.json_schemas import checked
from tests.trace_format import checked_trace

from ingot_build_rules.engine.events.chrome_trace import chrome_trace
from ingot_build_rules.engine.events.event_lines import event_line, read_timed_events
from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Event,
    Message,
    TargetFinished,
)
from ingot_build_rules.engine.events.trace_entries import TraceProcess

Timed = list[tuple[float, Event]]
BUILD = TraceProcess("a build")


def finished(
    number: int, seconds: float, needs: tuple[int, ...] = (), status: Any = "ran", error: str = ""
) -> ActionFinished:
    """An action's end."""
    return ActionFinished(
        number, "cut", f"part {number}", status, seconds, f"key {number}", error, needs
    )


# 1 and 2 together, then 3 (needs both, 2 was slower), 4 a hit on top of 3, 5 on top of 4; 6 is long
# and alone.
EVENTS: Timed = [
    (0.0, BuildStarted(("all",), 2)),
    (0.1, ActionStarted(1, "cut", "part 1")),
    (0.1, ActionStarted(2, "cut", "part 2")),
    (1.1, finished(1, 1.0)),
    (1.1, ActionStarted(6, "cut", "part 6")),
    (2.1, finished(2, 2.0)),
    (2.1, ActionStarted(3, "cut", "part 3")),
    (3.1, finished(3, 1.0, (1, 2))),
    (3.1, finished(4, 0.0, (3,), "hit")),
    (3.1, ActionStarted(5, "cut", "part 5")),
    (3.6, finished(6, 2.5)),
    (4.1, finished(5, 1.0, (4,), "failed", "no space")),
    (4.2, TargetFinished("all", "failed", "")),
    (4.2, Message("note", "done")),
    (4.3, BuildFinished({"cut": {"ran": 4, "hit": 1}}, 4.3, ("all",), ())),
]  # fmt: skip


def lanes(trace: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return lane name -> its entries."""
    names = {
        entry["tid"]: entry["args"]["name"]
        for entry in trace["traceEvents"]
        if entry["name"] == "thread_name"
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for entry in trace["traceEvents"]:
        if entry["ph"] != "M":
            found[names[entry["tid"]]].append(entry)
    return found


def test_lanes_and_the_critical_path() -> None:
    """Each job has its actions in a row, hits are points, and the longest chain of needs is marked
    and repeated."""
    text = chrome_trace(EVENTS, BUILD)
    checked_trace(text)
    trace = checked("trace", text)
    found = {name: [entry["name"] for entry in entries] for name, entries in lanes(trace).items()}
    assert found == {
        "critical path": ["cut part 2", "cut part 3", "cut part 5"],
        "hits and messages": ["hit: cut part 4", "failed: all", "note: done"],
        "job 1": ["cut part 1", "cut part 6"],
        "job 2": ["cut part 2", "cut part 3", "cut part 5"],
    }
    critical = {
        entry["args"]["number"]
        for entry in trace["traceEvents"]
        if entry["ph"] == "X" and entry["args"]["critical"]
    }
    assert critical == {2, 3, 5}
    assert trace["otherData"] == {
        "action_seconds": 7.5,
        "clock": "CLOCK_MONOTONIC",
        "critical_path_seconds": 4.0,
        "seconds": 4.3,
        "version": 1,
    }
    last = lanes(trace)["job 2"][-1]
    assert (last["ts"], last["dur"]) == (3_100_000, 1_000_000)
    assert (
        last["args"] | {"error_line": "no space", "status": "failed", "key": "key 5", "needs": [4]}
        == last["args"]
    )


def test_an_action_that_ran_again_makes_no_circle() -> None:
    """Its first run was what another needed, its second needs that one: the path ends."""
    events: Timed = [
        (0.0, BuildStarted(("all",), 2)),
        (1.0, finished(1, 1.0)),
        (2.0, finished(2, 1.0, (1,))),
        (3.0, finished(1, 1.0, (2,))),
        (3.1, BuildFinished({"cut": {"ran": 3}}, 3.1, ("all",), ())),
    ]
    other = json.loads(chrome_trace(events, BUILD))["otherData"]
    assert other["critical_path_seconds"] == 2.0


def test_the_trace_of_a_replay_is_the_same() -> None:
    """It is a function of the events."""
    lines = [event_line(event, seconds) for seconds, event in EVENTS]
    assert chrome_trace(read_timed_events(lines), BUILD) == chrome_trace(EVENTS, BUILD)
    assert json.loads(chrome_trace([], BUILD))["otherData"] == {
        "action_seconds": 0,
        "clock": "CLOCK_MONOTONIC",
        "critical_path_seconds": 0,
        "version": 1,
    }


def test_a_process_shifts_its_entries_to_the_shared_clock() -> None:
    """All entries carry the process, which has a name; times count from when the clock said that
    it had started."""
    here, there = (
        json.loads(chrome_trace(EVENTS, process))["traceEvents"]
        for process in (BUILD, TraceProcess("other", 77, 1000.5))
    )
    assert {entry["pid"] for entry in there} == {77}
    (named,) = [entry for entry in there if entry["name"] == "process_name"]
    assert named["args"] == {"name": "other"}
    times = [[entry["ts"] for entry in entries if entry["ph"] != "M"] for entries in (here, there)]
    assert times[1] == [time + 1000.5e6 for time in times[0]]


@st.composite
def builds(draw: st.DrawFn) -> tuple[int, Timed]:
    """A build of up to 30 actions on up to 4 jobs, as a scheduler would run it."""
    jobs = draw(st.integers(1, 4))
    events: Timed = [(0.0, BuildStarted((), jobs))]
    waiting, running, now, done = (
        list(range(draw(st.integers(0, 30)))),
        list[tuple[float, int, float, tuple[int, ...]]](),
        0.0,
        list[int](),
    )
    while waiting or running:
        while waiting and len(running) < jobs:
            number, seconds = waiting.pop(0), draw(st.integers(1, 9)) / 4
            events.append((now, ActionStarted(number, "cut", "")))
            needs = draw(st.lists(st.sampled_from(done), max_size=3, unique=True)) if done else []
            running.append((now + seconds, number, seconds, tuple(needs)))
        now, number, seconds, needed = first = min(running)
        running.remove(first)
        events.append((now, finished(number, seconds, needed)))
        done.append(number)
    return jobs, events


@given(builds())
def test_actions_of_a_lane_never_overlap_and_no_lane_is_wasted(build: tuple[int, Timed]) -> None:
    """There are as many lanes as jobs were busy at once, and the critical path is the longest
    chain."""
    jobs, events = build
    text = chrome_trace(events, BUILD)
    checked_trace(text)
    trace = json.loads(text)
    found = lanes(trace)
    path = found.pop("critical path")
    assert found.pop("hits and messages") == []
    assert len(found) <= jobs
    for entries in found.values():
        for one, two in itertools.pairwise(entries):
            assert one["ts"] + one["dur"] <= two["ts"]
    ends = {event.number: event for _, event in events if isinstance(event, ActionFinished)}
    longest: dict[int, float] = {}
    for number, event in ends.items():
        longest[number] = event.seconds + max((longest[need] for need in event.needs), default=0.0)
    assert trace["otherData"]["critical_path_seconds"] == max(longest.values(), default=0.0)
    numbers = [entry["args"]["number"] for entry in path]
    assert all(one in ends[two].needs for one, two in itertools.pairwise(numbers))
