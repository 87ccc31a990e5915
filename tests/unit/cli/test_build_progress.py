"""Progress of a build: what each display tells, that it is little, and that a replay tells the
same."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from ingot_build_rules.engine.events.event_lines import event_line, read_events
from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionQueued,
    ActionStarted,
    ActionStatus,
    BuildFinished,
    BuildStarted,
    Event,
    Message,
    TargetFinished,
)
from ingot_build_rules.tools.cli.building.build_progress import (
    EventWriter,
    PlainLines,
    build_observer,
)
from ingot_build_rules.tools.cli.building.build_tally import BuildTally
from ingot_build_rules.tools.cli.building.live_progress import render
from ingot_compiler.ir.errors import UserError


def finished(
    number: int, status: ActionStatus = "ran", label: str = "", error: str = ""
) -> ActionFinished:
    """An action's end."""
    return ActionFinished(number, "pack", label or f"part {number}", status, 0.25, "0" * 64, error)


SUMMARY = BuildFinished(
    {"sew": {"ran": 0, "hit": 0}, "pack": {"ran": 2, "hit": 1}},
    1.23456,
    failed=("c",),
    built=("a", "b"),
)
EVENTS: list[Event] = [
    BuildStarted(("a", "b", "c"), 2),
    ActionQueued(1, "pack", "part 1"),
    ActionStarted(1, "pack", "part 1"),
    finished(1),
    finished(2, "hit"),
    Message("warning", "one job at a time"),
    TargetFinished("a", "built", "dist/a"),
    TargetFinished("b", "unchanged", "dist/b"),
    finished(3, "failed", error="no space"),
    finished(4),
    TargetFinished("c", "failed", ""),
    SUMMARY,
]
PLAIN = [
    "ran 1: pack part 1, 250.00 ms",
    "warning: one job at a time",
    "ran 2: pack part 4, 250.00 ms",
]


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        """Start at a time that means nothing."""
        self.seconds = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


def plain_lines(events: Sequence[Event], step_seconds: float = 0.01) -> list[str]:
    """Return what the plain display prints when an event comes every so many seconds."""
    lines: list[str] = []
    clock = Clock()
    plain = PlainLines(lines.append, clock)
    for event in events:
        plain.observe(event)
        clock.seconds += step_seconds
    return lines


def test_plain_lines_tell_what_ran_and_what_is_new() -> None:
    """A hit is worth no line, and what became of targets is told at the end, once; the last action
    that ran is always there."""
    assert plain_lines(EVENTS) == PLAIN


def test_plain_lines_are_short() -> None:
    """A kernel of a hundred nodes takes no more room than a line; its time is there all the same."""
    event = dataclasses.replace(finished(1), label="/layer/node (Add), " * 100)
    (line,) = plain_lines([event, SUMMARY], 1)
    assert len(line) < 150
    assert line.endswith("..., 250.00 ms")


def test_plain_lines_are_throttled() -> None:
    """Ten lines a second for actions, however many run; messages are never left out."""
    many = [finished(number) for number in range(1000)]
    lines = plain_lines([*many, SUMMARY], 0.001)
    assert len(lines) <= 12
    assert lines[-1] == "ran 1000: pack part 999, 250.00 ms"
    assert len(plain_lines([Message("note", "x")] * 50 + [finished(1, "failed")] * 50)) == 50


def test_a_build_of_hits_prints_nothing() -> None:
    """The log of a build that had nothing to do has no line."""
    assert (
        plain_lines(
            [BuildStarted((), 1), *(finished(number, "hit") for number in range(9)), SUMMARY]
        )
        == []
    )


def test_labels_cannot_steer_the_terminal() -> None:
    """A name in a model is shown, not obeyed, in every display."""
    evil = "\x1b[2Jname\r\n\x07[bold]"
    lines = plain_lines([finished(1, label=evil), Message("note", evil)])
    shown = r"\x1b[2Jname\r\n\x07[bold]"
    assert lines == [f"ran 1: pack {shown}, 250.00 ms", f"note: {shown}"]
    tally = BuildTally({})
    tally.add(ActionStarted(1, "pack", evil), 0)
    assert r"\x1b[2Jname\r\n\x07[bold]" in drawn(tally, 1)


def drawn(tally: BuildTally, seconds: float) -> str:
    """Return the live display as text."""
    console = Console(file=io.StringIO(), width=100, color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(tally, seconds))
    return capture.get()


def test_off_a_terminal_the_lines_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output stays free for results; quiet is quiet."""
    clock = Clock()
    with build_observer({}, clock=clock) as observe:
        for event in EVENTS:
            observe(event)
    assert capsys.readouterr() == ("", "\n".join(PLAIN) + "\n")
    with build_observer({}, quiet=True) as observe:
        observe(finished(1))
    assert capsys.readouterr() == ("", "")


def test_a_replay_gives_the_same_display_and_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream in the file is the whole build."""
    path = tmp_path / "events"
    with build_observer({}, quiet=True, events=str(path)) as observe:
        for index, event in enumerate(EVENTS):
            observe(event)
            assert path.read_text().count("\n") == index + 1  # readable while it grows
    replayed = list(read_events(path.read_text().splitlines()))
    assert replayed == EVENTS
    assert plain_lines(replayed) == PLAIN
    with build_observer({}, quiet=True, events="-") as observe:
        observe(SUMMARY)
    assert list(read_events(capsys.readouterr().out.splitlines())) == [SUMMARY]


def test_mistakes_of_the_user_are_errors_in_four_parts(tmp_path: Path) -> None:
    """A place that cannot be written."""
    with (
        pytest.raises(UserError, match="cannot write the events") as found,
        build_observer({}, events=str(tmp_path)),
    ):
        pass
    assert found.value.where == str(tmp_path)


def failing(number: int) -> Callable[[str], object]:
    """Return a writer that the system refuses."""

    def write(_: str) -> object:
        raise OSError(number, os.strerror(number))

    return write


def test_a_full_disk_ends_the_stream_and_not_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    """One warning; a reader of a pipe that is gone is another matter."""
    writer = EventWriter(failing(errno.ENOSPC), Clock())
    writer.observe(SUMMARY)
    writer.observe(SUMMARY)
    assert (
        capsys.readouterr().err == "warning: the event stream ends here: No space left on device\n"
    )
    with pytest.raises(BrokenPipeError):
        EventWriter(failing(errno.EPIPE), Clock()).observe(SUMMARY)


# With "started", it goes on once the display has been drawn several times with what runs in it.
REPLAY = """
import sys, threading
from ingot_build_rules.tools.cli.building.build_progress import build_observer
from ingot_build_rules.engine.events.event_lines import read_events
drawn, frames = threading.Event(), []
if "started" in sys.argv:
    from ingot_build_rules.tools.cli.building import live_progress
    render = live_progress.render
    def noted(tally, seconds):
        if tally.running:
            frames.append(seconds)
            if len(frames) == 4:
                drawn.set()
        return render(tally, seconds)
    live_progress.render = noted
with build_observer({"pack": 60.0}) as observe:
    for event in read_events(sys.stdin):
        observe(event)
        if "started" in sys.argv and type(event).__name__ == "ActionStarted":
            drawn.wait()
print("rich" in sys.modules)
"""


def on_terminal(environment: dict[str, str], *arguments: str) -> tuple[str, str]:
    """Replay the events with a terminal as standard error; return what is on it, and standard
    output."""
    lines = "\n".join(event_line(event, 0) for event in EVENTS)
    base = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
    main, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, *arguments],
        input=lines,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        check=True,
        env={**base, "TERM": "xterm", **environment},
    )
    os.close(terminal)
    screen = b""
    with contextlib.suppress(OSError):  # nothing is left, and nobody can write any more
        while part := os.read(main, 1 << 16):
            screen += part
    os.close(main)
    return screen.decode(), done.stdout


def test_on_a_terminal_the_display_is_live_and_goes_away() -> None:
    """What runs is seen while it runs; what stays are the lines worth keeping."""
    screen, out = on_terminal({}, "started")
    assert out == "True\n"
    assert "0 ran, 0 hits, 1 running" in re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert "pack part 1" in screen
    assert "warning: one job at a time" in screen
    assert "\x1b[2K" in screen  # lines are erased
    assert "\x1b[33m" in screen  # a warning is yellow


@pytest.mark.parametrize(
    "environment", [{"TERM": "dumb"}, {"TERM": ""}, {"NO_COLOR": "1"}, {"CI": "true"}]
)
def test_a_terminal_that_nobody_looks_at_gets_plain_lines(environment: dict[str, str]) -> None:
    """No escape and no cursor that moves; ``rich`` is not even imported."""
    screen, out = on_terminal(environment)
    assert out == "False\n"
    assert "\x1b" not in screen
    assert screen.splitlines()[0] == PLAIN[0]


def test_what_is_no_ci_service() -> None:
    """``CI=false`` says so."""
    assert on_terminal({"CI": "false"}, "started")[1] == "True\n"


def test_off_a_terminal_rich_is_not_imported() -> None:
    """It takes its time, and a log has no use for it."""
    lines = "\n".join(event_line(event, 0) for event in EVENTS)
    done = subprocess.run(
        [sys.executable, "-c", REPLAY], input=lines, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    assert done.stderr.splitlines()[0] == PLAIN[0]
