"""Seconds of past builds: kept within bounds, never trusted, and good for an estimate."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingot_build_rules.engine.cache.state_file import write_state
from ingot_build_rules.engine.events.events import ActionFinished, ActionStatus, Event, Message
from ingot_build_rules.engine.events.history import (
    estimate,
    medians,
    read_history,
    with_events,
    write_history,
)


def finished(rule: str, status: ActionStatus, seconds: float) -> ActionFinished:
    """An action's end."""
    return ActionFinished(1, rule, "", status, seconds, "")


def test_only_what_ran_counts_and_the_latest_stay() -> None:
    """Hits and failures say nothing of how long a rule takes; old samples give way."""
    events: list[Event] = [
        finished("a", "ran", 1.0),
        finished("a", "hit", 0.1),
        finished("b", "failed", 9.0),
    ]
    samples = with_events({"a": (3.0,), "c": (1.0,)}, [*events, Message("note", "")])
    assert samples == {"a": (3.0, 1.0), "c": (1.0,)}
    assert with_events({}, [finished("a", "ran", float(index)) for index in range(100)]) == {
        "a": tuple(float(index) for index in range(68, 100))
    }
    assert medians(samples) == {"a": 2.0, "c": 1.0}


def test_a_history_comes_back(tmp_path: Path) -> None:
    """From a folder that is made for it, whatever order the rules came in."""
    path = tmp_path / "new" / "history"
    assert read_history(str(path)) == {}
    assert write_history(str(path), {"b": (2.0,), "a": (0.5, 1.5)})
    assert read_history(str(path)) == {"a": (0.5, 1.5), "b": (2.0,)}


def test_the_file_has_a_bounded_size(tmp_path: Path) -> None:
    """Neither more builds nor more rules make it grow without end."""
    path = tmp_path / "history"
    assert write_history(str(path), {f"rule_{index}": (1.0,) * 1000 for index in range(2000)})
    assert path.stat().st_size < 200_000
    assert len(read_history(str(path))) == 500


@pytest.mark.parametrize(
    "state",
    [
        1,
        {1: (1.0,)},
        {"a": 1},
        {"a": ("1",)},
        {"a": (-1.0,)},
        {"a": (float("nan"),)},
        {"a": (float("inf"),)},
    ],
)
def test_a_foreign_history_is_empty(state: object, tmp_path: Path) -> None:
    """What has the wrong shape is not used, even where the file's own digest is right."""
    assert write_state(str(tmp_path / "history"), "history 1", state)
    assert read_history(str(tmp_path / "history")) == {}


def test_a_damaged_history_is_empty(tmp_path: Path) -> None:
    """A flipped bit anywhere is noticed."""
    path = tmp_path / "history"
    write_history(str(path), {"a": (1.0, 2.0)})
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 4]) + whole[index + 1 :])
        assert read_history(str(path)) == {}


def test_estimates() -> None:
    """Jobs share the work, the longest action cannot be shared, an unknown rule counts as the
    median one."""
    history = {"a": 1.0, "b": 4.0, "c": 2.0}
    assert estimate(history, {}, 4) == 0
    assert estimate(history, {"a": 0, "b": 0}, 4) == 0
    assert estimate(history, {"a": 8}, 4) == 2
    assert estimate(history, {"a": 2, "b": 1}, 4) == 4
    assert estimate(history, {"new": 3}, 1) == 6
    assert estimate({}, {"new": 3}, 1) == 0
