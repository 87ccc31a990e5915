"""What happens in a build, as a stream of small values.

In: an executor's progress. Out: events, handed to an ``Observer`` in the order in which they
happen. Not done here: the stream as text (``event_lines``), displays, traces.

A build is one ``BuildStarted``, any of the others, one ``BuildFinished``. Actions have numbers that
are unique within a build. ``ActionQueued`` and ``ActionStarted`` are optional for an action (a hit
has neither); ``ActionFinished`` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from ingot_runtime.lazy_dataclass import dataclass

ActionStatus = Literal["ran", "hit", "failed"]
TargetStatus = Literal["built", "passed", "unchanged", "failed", "skipped"]
Level = Literal["note", "warning", "error"]
Counts = Mapping[str, Mapping[str, int]]
"""Rule name -> {"ran": actions computed, "hit": results that were there already}."""


@dataclass(frozen=True, slots=True)
class BuildStarted:
    """``targets`` were asked for; at most ``jobs`` actions run at once."""

    targets: tuple[str, ...]
    jobs: int


@dataclass(frozen=True, slots=True)
class ActionQueued:
    """The cache has no result of an action, which waits for a job; an estimate counts it."""

    number: int
    rule: str
    label: str


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """An action takes a job."""

    number: int
    rule: str
    label: str


@dataclass(frozen=True, slots=True)
class ActionFinished:
    """An action is done; its job is free.

    ``seconds``: how long it held its job. ``error_line``: the first line of what went wrong, for
    one that failed.
    ``needs``: numbers of the actions whose results it used.
    """

    number: int
    rule: str
    label: str
    status: ActionStatus
    seconds: float
    key: str
    error_line: str = ""
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetFinished:
    """One of the targets is settled; ``output`` is its file, empty where there is none."""

    name: str
    status: TargetStatus
    output: str


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell that belongs to no action."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class BuildFinished:
    """The summary: what ran of every rule, wall seconds, targets that failed and targets that are
    there."""

    rules: Counts
    seconds: float
    failed: tuple[str, ...]
    built: tuple[str, ...]


Event = (
    BuildStarted
    | ActionQueued
    | ActionStarted
    | ActionFinished
    | TargetFinished
    | Message
    | BuildFinished
)
Observer = Callable[[Event], None]
