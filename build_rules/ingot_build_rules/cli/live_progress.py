"""The live display of a build on a terminal: counts, a bar, an estimate, what is running.

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

from ingot_build_rules.cli.build_tally import BuildTally, text_worth
from ingot_build_rules.cli.console import format_seconds
from ingot_build_rules.engine.events.events import Event, Observer
from ingot_runtime.printable import printable

RUNNING_SHOWN_MAX = 8


@contextmanager
def live_progress(
    history: Mapping[str, float], clock: Callable[[], float], console: Console | None = None
) -> Generator[Observer]:
    """Show the build while the block runs."""
    tally = BuildTally(history, started=clock())
    lock = threading.Lock()  # the display is drawn by a thread of its own

    def draw() -> RenderableType:
        with lock:
            return render(tally, clock())

    shown = console or Console(stderr=True)
    with Live(get_renderable=draw, console=shown, transient=True, refresh_per_second=8) as live:

        def observe(event: Event) -> None:
            with lock:
                tally.add(event, clock())
            if text := text_worth(event):
                live.console.print(Text(text))

        yield observe


def render(tally: BuildTally, seconds: float) -> RenderableType:
    """Return the display at ``seconds`` on the events' clock."""
    head = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=tally.done + tally.left, completed=tally.done, width=24)
    head.add_row(bar, Text(_counts(tally)), Text(_times(tally, seconds)))
    running = list(tally.running.values())
    rows = [
        _row(rule, label, seconds - start) for rule, label, start in running[:RUNNING_SHOWN_MAX]
    ]
    if len(running) > RUNNING_SHOWN_MAX:
        rows.append(Text(f"  and {len(running) - RUNNING_SHOWN_MAX} more"))
    return Group(head, *rows)


def _counts(tally: BuildTally) -> str:
    names = (
        ("ran", tally.counts["ran"]),
        ("hits", tally.counts["hit"]),
        ("failed", tally.counts["failed"]),
    )
    return ", ".join(
        [
            *(f"{count} {name}" for name, count in names if count or name != "failed"),
            f"{tally.left} left",
        ]
    )


def _times(tally: BuildTally, seconds: float) -> str:
    left = tally.seconds_left(seconds)
    return f"{seconds - tally.started:.0f} s" + (f", about {left:.0f} s left" if left >= 1 else "")


def _row(rule: str, label: str, seconds: float) -> Text:
    text = printable(f"{rule} {label}".rstrip())
    return Text(f"{format_seconds(seconds):>10}  {text}", no_wrap=True, overflow="ellipsis")
