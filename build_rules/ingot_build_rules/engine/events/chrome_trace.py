"""The course of a build as a Chrome trace, for Perfetto (ui.perfetto.dev) and chrome://tracing.

In: events and when they came. Out: JSON, the same for the same events. Not done here: writing it.

One lane per job; one for hits and messages; one that repeats the critical path: the chain of
actions, each of which used the result of the one before, that took longest. No number of jobs makes
the build faster than that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionStarted,
    BuildFinished,
    Event,
    Message,
    TargetFinished,
)

_CRITICAL_LANE, _POINTS_LANE, _FIRST_JOB_LANE = 1, 2, 3
_Action = tuple[int, float, float, ActionFinished]
"""Lane, seconds at which it started and ended, what it was."""


def chrome_trace(events: Iterable[tuple[float, Event]]) -> str:
    """Return the trace of (seconds since the start, event) in their order."""
    actions: list[_Action] = []
    finished: list[ActionFinished] = []
    points: list[dict[str, Any]] = []
    started: dict[int, tuple[int, float]] = {}
    summary: dict[str, Any] = {}
    for seconds, event in events:
        if isinstance(event, ActionStarted):
            started[event.number] = (_free_lane([lane for lane, _ in started.values()]), seconds)
        if isinstance(event, ActionFinished):
            finished.append(event)
        if isinstance(event, ActionFinished) and event.number in started:
            actions.append((*started.pop(event.number), seconds, event))
        elif isinstance(event, BuildFinished):
            summary = {"seconds": event.seconds}
        elif name := _point_name(event):
            points.append(_point(name, seconds, event))
    path = _critical_path(finished)
    lanes = {lane for lane, *_ in actions}
    entries = [
        *_lane_names(lanes),
        *points,
        *(_slice(*action, critical=action[3].number in path) for action in actions),
    ]
    entries += [
        _slice(_CRITICAL_LANE, *action[1:], critical=True)
        for action in actions
        if action[3].number in path
    ]
    summary |= {
        "critical_path_seconds": sum(path.values()),
        "action_seconds": sum(item.seconds for item in finished),
    }
    return (
        json.dumps(
            {"traceEvents": entries, "otherData": summary}, separators=(",", ":"), sort_keys=True
        )
        + "\n"
    )


def _free_lane(taken: Sequence[int]) -> int:
    return next(
        lane
        for lane in range(_FIRST_JOB_LANE, _FIRST_JOB_LANE + len(taken) + 1)
        if lane not in taken
    )


def _critical_path(actions: Sequence[ActionFinished]) -> Mapping[int, float]:
    """Return number -> seconds of the actions on the path; an action comes after those that it
    needs."""
    total: dict[int, float] = {}
    before: dict[int, int] = {}
    seconds = {action.number: action.seconds for action in actions}

    def longest(numbers: Iterable[int]) -> int | None:
        return max(numbers, key=lambda number: (total[number], -number), default=None)

    for action in actions:
        slowest = longest(number for number in action.needs if number in total)
        total[action.number] = action.seconds
        if slowest is not None:
            total[action.number] += total[slowest]
            before[action.number] = slowest
    path: dict[int, float] = {}
    number = longest(total)
    while number is not None:
        path[number] = seconds[number]
        number = before.get(number)
    return path


def _point_name(event: Event) -> str:
    match event:
        case ActionFinished():
            return f"{event.how}: {event.rule} {event.label}".rstrip()
        case TargetFinished():
            return f"{event.how}: {event.name}"
        case Message():
            return f"{event.level}: {event.text}"
        case _:
            return ""


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _point(name: str, seconds: float, event: Event) -> dict[str, Any]:
    kind = event.rule if isinstance(event, ActionFinished) else "build"
    return {
        "ph": "i",
        "s": "t",
        "pid": 1,
        "tid": _POINTS_LANE,
        "name": name,
        "cat": kind,
        "ts": _microseconds(seconds),
    }


def _slice(
    lane: int, start: float, end: float, action: ActionFinished, *, critical: bool
) -> dict[str, Any]:
    begin = _microseconds(start)
    arguments: dict[str, Any] = {
        "number": action.number,
        "how": action.how,
        "key": action.key,
        "seconds": action.seconds,
    }
    arguments |= {"needs": list(action.needs), "critical": critical}
    if action.error:
        arguments["error"] = action.error
    name = f"{action.rule} {action.label}".rstrip()
    times = {"ts": begin, "dur": _microseconds(end) - begin}
    return {
        "ph": "X",
        "pid": 1,
        "tid": lane,
        "name": name,
        "cat": action.rule,
        "args": arguments,
        **times,
    }


def _lane_names(lanes: Iterable[int]) -> list[dict[str, Any]]:
    names = {_CRITICAL_LANE: "critical path", _POINTS_LANE: "hits and messages"}
    names |= {lane: f"job {lane - _FIRST_JOB_LANE + 1}" for lane in sorted(lanes)}
    named = {"ph": "M", "pid": 1, "name": "thread_name"}
    order = {"ph": "M", "pid": 1, "name": "thread_sort_index"}
    return [
        entry
        for lane, name in names.items()
        for entry in (
            named | {"tid": lane, "args": {"name": name}},
            order | {"tid": lane, "args": {"sort_index": lane}},
        )
    ]
