"""The live display is honest: a bar only where it is known how many actions there are, a spinner
elsewhere, and an estimate of what really runs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console
from tests.harness.build_harness import TARGET, chain

from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionQueued,
    ActionStarted,
    ActionStatus,
    BuildStarted,
    TargetFinished,
)
from ingot_build_rules.engine.events.history import estimate
from ingot_build_rules.tools.cli.building.build_tally import BuildTally
from ingot_build_rules.tools.cli.building.live_progress import render
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace.open_workspace import load_project
from ingot_build_rules.tools.workspace.opened_build import last_actions

_LAST = {
    "a": {"1": "sew", "2": "pack", "3": "pack"},
    "b": {"3": "pack", "4": "pack", "5": "pack"},
}


def last(target: str) -> Mapping[str, str] | None:
    """What the last build did: five actions of two targets, which share one."""
    return _LAST.get(target)


def ended(tally: BuildTally, number: int, rule: str = "pack", status: ActionStatus = "ran") -> None:
    """An action ends."""
    tally.add(ActionFinished(number, rule, "", status, 0.25, "0" * 64), 0)


def first_line(tally: BuildTally, seconds: float) -> str:
    """The first line of the display."""
    console = Console(file=io.StringIO(), width=100, color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(tally, seconds))
    return capture.get().splitlines()[0]


def test_a_first_build_has_a_spinner() -> None:
    """Nobody knows how many actions there are: counts, no bar, no estimate; it turns."""
    tally = BuildTally({"pack": 10.0}, last)
    tally.add(BuildStarted(("a", "new"), 2), 100)
    for number in range(30):
        tally.add(ActionQueued(number, "pack", f"part {number}"), 100)
    for number in range(10):
        tally.add(ActionStarted(number, "pack", f"part {number}"), 104)
    ended(tally, 0)
    ended(tally, 40, status="hit")
    ended(tally, 1, status="failed")
    assert tally.total is None
    assert tally.seconds_left(106) is None
    line = first_line(tally, 106)
    assert "1 ran, 1 hits, 1 failed, 8 running, 20 waiting  6 s" in line
    assert "left" not in line
    turns = [first_line(tally, 100 + eighth / 8)[0] for eighth in range(4)]
    assert turns == ["|", "/", "-", "\\"]


def test_a_build_as_the_last_one_has_a_bar() -> None:
    """What targets share is counted once; the time left is that of what is not done."""
    tally = BuildTally({"pack": 10.0, "sew": 1.0}, last)
    tally.add(BuildStarted(("a", "b"), 2), 0)
    assert tally.total == 5
    assert "0 of 5: 0 ran, 0 hits  0 s, about 20 s left" in first_line(tally, 0)
    ended(tally, 1, "sew")
    tally.add(ActionQueued(2, "pack", ""), 0)
    tally.add(ActionStarted(2, "pack", ""), 0)
    assert tally.total == 5
    assert "1 of 5: 1 ran, 0 hits  4 s, about 18 s left" in first_line(tally, 4)
    for number in range(2, 6):
        ended(tally, number)
    assert (tally.done, tally.total, tally.seconds_left(9)) == (5, 5, 0.0)


def test_hits_take_no_time() -> None:
    """Of a rule whose actions are all in the cache, none is expected to run; of another, as many
    as of those that have ended."""
    tally = BuildTally({"pack": 10.0}, last)
    tally.add(BuildStarted(("b",), 1), 0)
    assert tally.seconds_left(0) == 30.0
    ended(tally, 1, status="hit")
    assert tally.seconds_left(0) == 0.0
    ended(tally, 2)
    assert tally.seconds_left(0) == pytest.approx(5.0)


def test_a_longer_build_gets_its_spinner_back() -> None:
    """A model that has changed may have more actions than the last time: then nobody knows."""
    tally = BuildTally({}, last)
    tally.add(BuildStarted(("b",), 1), 0)
    for number in range(3):
        ended(tally, number)
    assert tally.total == 3
    tally.add(ActionQueued(9, "pack", ""), 0)
    assert tally.total is None
    assert "3 ran, 0 hits, 0 running, 1 waiting" in first_line(tally, 1)


def test_an_unchanged_target_has_no_actions() -> None:
    """Those that it alone had do not count any more."""
    tally = BuildTally({}, last)
    tally.add(BuildStarted(("a", "b"), 1), 0)
    tally.add(TargetFinished("b", "unchanged", ""), 0)
    assert tally.total == 3


def test_without_a_project_nothing_is_known() -> None:
    """``ingot compile`` has no last build."""
    tally = BuildTally({"pack": 1.0})
    assert tally.total is None
    tally.add(BuildStarted((), 1), 0)
    assert tally.total is None


def test_an_action_that_may_run_counts_in_part() -> None:
    """A hundredth of a long one is no long wait."""
    assert estimate({"pack": 100.0}, {"pack": 0.01}, 4) == pytest.approx(1.0)
    assert estimate({"pack": 100.0}, {"pack": 2}, 4) == 100.0


def test_the_last_build_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trace has each action of a bundle with its rule; before the first build there is none."""
    (tmp_path / "m.onnx").write_bytes(chain([2, 2]).SerializeToString())
    (tmp_path / "ingot.toml").write_text(
        f'[model.m]\nsource = "m.onnx"\n[bundle.m]\nmodel = "m"\ntargets = ["{TARGET}"]\n'
    )
    monkeypatch.chdir(tmp_path)
    loaded = load_project(".", [])
    assert last_actions(loaded, "m") is None
    assert last_actions(loaded, "test.m") is None
    assert main(["build", "-q", "--events", "events"]) == 0
    actions = last_actions(loaded, "m")
    assert actions
    events = (tmp_path / "events").read_text()
    assert len(actions) == events.count('"action_finished"')
    assert events.count('"action_queued"') >= events.count('"action_started"') > 0
    assert {"import_model", "bundle"} <= set(actions.values())
