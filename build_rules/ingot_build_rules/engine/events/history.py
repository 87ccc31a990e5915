"""How long actions of each rule took in past builds, for an estimate of what is left of this one.

In: events; a file in the workspace. Out: medians in seconds, an estimate. Not done here: displays.
No result depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard, cast

from ingot_build_rules.engine.cache.state_file import read_state, write_state
from ingot_build_rules.engine.events.events import ActionFinished, Event

SAMPLES_MAX = 32
RULES_MAX = 500
_KIND = "history 1"
Samples = Mapping[str, tuple[float, ...]]
"""Rule -> seconds of its latest actions that ran, the latest last."""


def read_history(path: str) -> dict[str, tuple[float, ...]]:
    """Return what ``write_history`` kept; nothing where the file is damaged, foreign or not
    there."""
    state = read_state(path, _KIND)
    if not isinstance(state, dict):
        return {}
    entries = cast("dict[object, object]", state)
    return {
        rule: seconds
        for rule, seconds in entries.items()
        if isinstance(rule, str) and _are_seconds(seconds)
    }


def write_history(path: str, samples: Samples) -> bool:
    """Keep the samples, of at most 500 rules; return False if the system refuses."""
    kept = sorted(samples)[:RULES_MAX]
    return write_state(path, _KIND, {rule: samples[rule][-SAMPLES_MAX:] for rule in kept})


def with_events(samples: Samples, events: Iterable[Event]) -> dict[str, tuple[float, ...]]:
    """Return the samples and those of the actions that ran, the latest 32 of each rule."""
    found = {rule: list(seconds) for rule, seconds in samples.items()}
    for event in events:
        if isinstance(event, ActionFinished) and event.status == "ran":
            found.setdefault(event.rule, []).append(event.seconds)
    return {rule: tuple(seconds[-SAMPLES_MAX:]) for rule, seconds in found.items()}


def medians(samples: Samples) -> dict[str, float]:
    """Return rule -> median seconds."""
    return {rule: _median(seconds) for rule, seconds in samples.items() if seconds}


def estimate(history: Mapping[str, float], pending: Mapping[str, float], jobs: int) -> float:
    """Return the seconds that ``jobs`` jobs need for what is pending, at least.

    Args:
        history: rule -> seconds of one action; a rule that is not there counts as the median one.
        pending: rule -> how many actions of it are left; a part of one is one that may run.
        jobs: at least 1.
    """
    typical = _median(history.values()) if history else 0.0
    each = {rule: history.get(rule, typical) for rule, count in pending.items() if count}
    total = sum(each[rule] * pending[rule] for rule in sorted(each))
    longest = max((each[rule] * min(1, pending[rule]) for rule in each), default=0.0)
    return max(total / jobs, longest)


def _median(numbers: Iterable[float]) -> float:
    """``statistics`` takes longer to load than many a build's action runs."""
    ordered = sorted(numbers)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _are_seconds(value: object) -> TypeGuard[tuple[float, ...]]:
    values = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)
    return all(isinstance(item, float) and 0 <= item < float("inf") for item in values)
