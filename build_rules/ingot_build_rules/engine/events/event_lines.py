"""The events of a build as lines of JSON, for other programs and for replay.

In: events and when they happened; lines. Out: lines; the same events again. Not done here: files,
displays.

A line is ``{"version": 1, "time_seconds": T, "kind": KIND, ...fields}``; docs/json.md has the fields.
New fields and kinds may come without a new version: a reader ignores fields that it does not know
and turns a line that it cannot use into a ``Message``.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from ingot_build_rules.engine.events import events
from ingot_build_rules.engine.events.events import Event, Message

VERSION = 1
KINDS: dict[str, type[Event]] = {
    "build_started": events.BuildStarted,
    "action_queued": events.ActionQueued,
    "action_started": events.ActionStarted,
    "action_finished": events.ActionFinished,
    "target_finished": events.TargetFinished,
    "message": events.Message,
    "build_finished": events.BuildFinished,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_FIELDS = {kind: dataclasses.fields(kind) for kind in KINDS.values()}


def event_line(event: Event, seconds_since_start: float) -> str:
    """Return the event as one line of JSON, without the line break."""
    time_seconds = round(seconds_since_start, 6)
    head = {"version": VERSION, "time_seconds": time_seconds, "kind": _NAMES[type(event)]}
    fields = {field.name: getattr(event, field.name) for field in _FIELDS[type(event)]}
    # Printable ASCII on a terminal too: the only control character that ``json`` leaves is DEL.
    return json.dumps(head | fields, allow_nan=False, separators=(",", ":")).replace(
        "\x7f", "\\u007f"
    )


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events of a stream; never raises for what a line holds."""
    return (event for _, event in read_timed_events(lines))


def read_timed_events(lines: Iterable[str]) -> Iterator[tuple[float, Event]]:
    """Yield (seconds since the start, event) of a stream; never raises for what a line holds.

    A line of a newer version or a damaged one becomes a note or a warning in its place, at the time
    of the line before it.
    """
    seconds = 0.0
    for index, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            seconds, event = _read(line)
        except (TypeError, ValueError, RecursionError) as error:
            event = Message("warning", f"line {index} of the event stream is skipped: {error}")
        yield seconds, event


def _read(line: str) -> tuple[float, Event]:
    found: object = json.loads(line)
    if not isinstance(found, dict):
        raise TypeError("expected a JSON object")
    values = cast("dict[str, object]", found)
    kind, seconds = _text(values.get("kind")), _number(values.get("time_seconds"))
    if kind not in KINDS:
        version = values.get("version")
        return seconds, Message(
            "note", f"an event of kind {kind!r} (version {version}) is newer than this reader"
        )
    made: dict[str, object] = {}
    for field in _FIELDS[KINDS[kind]]:
        if field.name in values:
            made[field.name] = _CHECKS[str(field.type)](values[field.name])
        elif field.default is dataclasses.MISSING:
            raise ValueError(f"{kind} has no {field.name}")
    return seconds, cast("Callable[..., Event]", KINDS[kind])(**made)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r:.40}")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a whole number, got {value!r:.40}")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"expected a number, got {value!r:.40}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"expected seconds, got {value!r:.40}")
    return float(value)


def _one_of(choices: object) -> Callable[[object], str]:
    known = cast("tuple[str, ...]", typing.get_args(choices))

    def check(value: object) -> str:
        text = _text(value)
        if text not in known:
            raise ValueError(f"expected one of {', '.join(known)}, got {value!r:.40}")
        return text

    return check


def _many(check: Callable[[object], object]) -> Callable[[object], tuple[object, ...]]:
    def check_all(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {value!r:.40}")
        return tuple(check(item) for item in cast("list[object]", value))

    return check_all


def _table(check: Callable[[object], object]) -> Callable[[object], dict[str, object]]:
    def check_all(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise TypeError(f"expected a table, got {value!r:.40}")
        return {name: check(item) for name, item in cast("dict[str, object]", value).items()}

    return check_all


_CHECKS: dict[str, Callable[[object], object]] = {
    "str": _text,
    "int": _integer,
    "float": _number,
    "tuple[str, ...]": _many(_text),
    "tuple[int, ...]": _many(_integer),
    "Counts": _table(_table(_integer)),
    "ActionStatus": _one_of(events.ActionStatus),
    "TargetStatus": _one_of(events.TargetStatus),
    "Level": _one_of(events.Level),
}
