"""The live display of a build on a terminal: how far it is, counts, an estimate, what is running.

In: events. Out: a few lines on standard error that go away at the end, and lines that stay. Not
done here: choosing this display (``build_progress``). Imported when it is shown: ``rich`` takes its
time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ingot_build_rules.engine.events.events import Event, Message, Observer
from ingot_build_rules.tools.cli.building.build_tally import (
    BuildTally,
    LastActions,
    never_built,
    text_worth,
)
from ingot_build_rules.tools.cli.shell.console import format_seconds
from ingot_runtime.printable import printable

RUNNING_SHOWN_MAX = 8
_SPINNER = "|/-\\"
_TURNS_PER_SECOND = 2
_STYLES = {"ran": "", "hits": "green", "failed": "bold red"}
_LEVEL_STYLES = {"note": "bold", "warning": "yellow", "error": "bold red"}


@contextmanager
def live_progress(
    history: Mapping[str, float],
    clock: Callable[[], float],
    last_actions: LastActions = never_built,
    console: Console | None = None,
) -> Generator[Observer]:
    """Show the build while the block runs."""
    tally = BuildTally(history, last_actions, started=clock())
    lock = threading.Lock()  # the display is drawn by a thread of its own

    def draw() -> RenderableType:
        with lock:
            return render(tally, clock())

    shown = console or Console(stderr=True)
    with Live(get_renderable=draw, console=shown, transient=True, refresh_per_second=8) as live:

        def observe(event: Event) -> None:
            with lock:
                tally.add(event, clock())
            if isinstance(event, Message):
                live.console.print(Text(text_worth(event), _LEVEL_STYLES[event.level]))

        yield observe


def render(tally: BuildTally, seconds: float) -> RenderableType:
    """Return the display at ``seconds`` on the events' clock."""
    head = Table.grid(padding=(0, 2))
    head.add_row(_how_far(tally, seconds), _counts(tally), Text(_times(tally, seconds)))
    running = list(tally.running.values())
    rows = [
        _row(rule, label, seconds - start) for rule, label, start in running[:RUNNING_SHOWN_MAX]
    ]
    if len(running) > RUNNING_SHOWN_MAX:
        rows.append(Text(f"  and {len(running) - RUNNING_SHOWN_MAX} more"))
    return Group(head, *rows)


def _how_far(tally: BuildTally, seconds: float) -> RenderableType:
    """A bar where it is known how many actions there are; else a spinner, which promises
    nothing."""
    if tally.total is not None:
        return ProgressBar(total=max(1, tally.total), completed=tally.done, width=24)
    turns = (seconds - tally.started) * _TURNS_PER_SECOND
    return Text(_SPINNER[int(turns * len(_SPINNER)) % len(_SPINNER)])


def _counts(tally: BuildTally) -> Text:
    names = (
        ("ran", tally.counts["ran"]),
        ("hits", tally.counts["hit"]),
        ("failed", tally.counts["failed"]),
    )
    shown = Text(", ").join(
        Text(f"{count} {name}", _STYLES[name]) for name, count in names if count or name != "failed"
    )
    if tally.total is not None:
        return Text.assemble(f"{tally.done} of {tally.total}: ", shown)
    waiting = f", {len(tally.queued)} waiting" if tally.queued else ""
    return Text.assemble(shown, f", {len(tally.running)} running{waiting}")


def _times(tally: BuildTally, seconds: float) -> str:
    left = tally.seconds_left(seconds)
    left_text = f", about {left:.0f} s left" if left is not None and left >= 1 else ""
    return f"{seconds - tally.started:.0f} s{left_text}"


def _row(rule: str, label: str, seconds: float) -> Text:
    text = printable(f"{rule} {label}".rstrip())
    return Text(f"{format_seconds(seconds):>10}  {text}", no_wrap=True, overflow="ellipsis")
