"""The course of a build as a trace.

In: events and when they came. Out: JSON, the same for the same events. Not done here: writing it,
the format of entries (``trace_entries``).

One lane per job; one for hits and messages; one that repeats the critical path: the chain of
actions, each of which used the result of the one before, that took longest. No number of jobs makes
the build faster than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionStarted,
    BuildFinished,
    Event,
    Message,
    TargetFinished,
)
from ingot_build_rules.engine.events.trace_entries import Entry, TraceProcess, trace_text
from ingot_runtime.lazy_dataclass import dataclass

_CRITICAL_LANE, _POINTS_LANE, _FIRST_JOB_LANE = 1, 2, 3
_ARGUMENTS = ("number", "status", "key", "seconds")
"""What a trace shows of an action as it is."""
_Action = tuple[int, float, float, ActionFinished]
"""Lane, seconds at which it started and ended, what it was."""


@dataclass(slots=True)
class _Course:
    """What events have told so far: ``finished`` actions, with their times if they ``ran``; entries
    of ``points`` in time; ``seconds`` of the whole build, once it is known."""

    process: TraceProcess
    finished: list[ActionFinished] = field(default_factory=list[ActionFinished])
    ran: list[_Action] = field(default_factory=list[_Action])
    points: list[Entry] = field(default_factory=list[Entry])
    seconds: float | None = None
    _started: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])

    def see(self, seconds: float, event: Event) -> None:
        """Take an event that came after so many seconds."""
        if isinstance(event, ActionStarted):
            lane = _free_lane([lane for lane, _ in self._started.values()])
            self._started[event.number] = (lane, seconds)
        if isinstance(event, ActionFinished):
            self.finished.append(event)
        if isinstance(event, ActionFinished) and event.number in self._started:
            self.ran.append((*self._started.pop(event.number), seconds, event))
        elif isinstance(event, BuildFinished):
            self.seconds = event.seconds
        elif name := _point_name(event):
            kind = event.rule if isinstance(event, ActionFinished) else "build"
            self.points.append(self.process.point(_POINTS_LANE, name, kind, seconds))


def chrome_trace(events: Iterable[tuple[float, Event]], process: TraceProcess) -> str:
    """Return the trace of (seconds since the start, event) in their order."""
    course = _Course(process)
    for seconds, event in events:
        course.see(seconds, event)
    path = _critical_path(course.finished)
    critical = [action for action in course.ran if action[3].number in path]
    entries = [
        process.named(),
        *process.lanes(_lane_names({lane for lane, *_ in course.ran})),
        *course.points,
        *(_slice(process, *action, critical=action[3].number in path) for action in course.ran),
        *(_slice(process, _CRITICAL_LANE, *action[1:], critical=True) for action in critical),
    ]
    summary: dict[str, Any] = {} if course.seconds is None else {"seconds": course.seconds}
    summary["critical_path_seconds"] = sum(path.values())
    summary["action_seconds"] = sum(item.seconds for item in course.finished)
    return trace_text(entries, summary)


def _free_lane(taken: Sequence[int]) -> int:
    return next(
        lane
        for lane in range(_FIRST_JOB_LANE, _FIRST_JOB_LANE + len(taken) + 1)
        if lane not in taken
    )


def _critical_path(actions: Sequence[ActionFinished]) -> Mapping[int, float]:
    """Return number -> seconds of the actions on the path; an action comes after those that it
    needs. One that ran again, since its result was damaged, is there each time that it ended: the
    path leads to what ended before, and never in a circle."""
    total: list[float] = []
    before: list[int | None] = []
    last: dict[int, int] = {}

    def longest(places: Iterable[int]) -> int | None:
        return max(places, key=lambda place: (total[place], -place), default=None)

    for place, action in enumerate(actions):
        slowest = longest(last[number] for number in action.needs if number in last)
        total.append(action.seconds + (0 if slowest is None else total[slowest]))
        before.append(slowest)
        last[action.number] = place
    path: dict[int, float] = {}
    at = longest(range(len(total)))
    while at is not None:
        path[actions[at].number] = actions[at].seconds
        at = before[at]
    return path


def _point_name(event: Event) -> str:
    match event:
        case ActionFinished():
            return f"{event.status}: {event.rule} {event.label}".rstrip()
        case TargetFinished():
            return f"{event.status}: {event.name}"
        case Message():
            return f"{event.level}: {event.text}"
        case _:
            return ""


def _slice(
    process: TraceProcess,
    lane: int,
    start: float,
    end: float,
    action: ActionFinished,
    *,
    critical: bool,
) -> Entry:
    arguments: dict[str, Any] = {name: getattr(action, name) for name in _ARGUMENTS}
    arguments |= {"needs": list(action.needs), "critical": critical}
    if action.error_line:
        arguments["error_line"] = action.error_line
    name = f"{action.rule} {action.label}".rstrip()
    return process.slice(lane, name, action.rule, start, end, arguments)


def _lane_names(lanes: Iterable[int]) -> dict[int, str]:
    names = {_CRITICAL_LANE: "critical path", _POINTS_LANE: "hits and messages"}
    return names | {lane: f"job {lane - _FIRST_JOB_LANE + 1}" for lane in sorted(lanes)}
