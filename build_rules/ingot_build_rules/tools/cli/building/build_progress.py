"""Progress of a build from its events: a live display on a terminal, plain lines elsewhere, lines
of JSON for programs.

In: events. Out: text on standard error; with ``--events`` the stream in a file. Not done here: the
live display itself (``live_progress``), errors.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Mapping

from ingot_build_rules.engine.events.event_lines import event_line
from ingot_build_rules.engine.events.events import ActionFinished, BuildFinished, Event, Observer
from ingot_build_rules.tools.cli.building.build_tally import (
    LastActions,
    action_text,
    never_built,
    text_worth,
)
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.terminal import is_live
from ingot_compiler.ir.errors import UserError

Clock = Callable[[], float]
Write = Callable[[str], object]
"""Writes one line."""
SECONDS_BETWEEN_LINES = 0.1
_ACTION_LENGTH_MAX = 120  # a kernel may have a hundred nodes; `ingot log` has them all
STANDARD_OUTPUT = "-"


@contextlib.contextmanager
def build_observer(
    history: Mapping[str, float],
    *,
    last_actions: LastActions = never_built,
    quiet: bool = False,
    events: str | None = None,
    clock: Clock = time.monotonic,
) -> Generator[Observer]:
    """Show one build while the block runs.

    Args:
        history: rule -> seconds of one action in past builds, for the estimate.
        last_actions: what the last build of a target did, for how many actions there are.
        quiet: no display; failures are the caller's errors anyway.
        events: a file for the event stream, or ``-`` for standard output.
        clock: gives seconds.

    Raises:
        UserError: the file cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        observers: list[Observer] = []
        if events is not None:
            observers.append(EventWriter(stack.enter_context(_opened(events)), clock).observe)
        if not quiet:
            observers.append(stack.enter_context(_display(history, clock, last_actions)))

        def observe(event: Event) -> None:
            for observer in observers:
                observer(event)

        yield observe


@contextlib.contextmanager
def _opened(path: str) -> Generator[Write]:
    if path == STANDARD_OUTPUT:
        yield lambda text: console.print_lines(text, flush=True)
        return
    try:
        # Only opening it is the user's mistake.
        file = open(path, "wb", buffering=0)  # noqa: SIM115
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(
            "cannot write the events", where=path, why=why, do="choose another file"
        ) from error
    with file:
        yield lambda text: file.write(f"{text}\n".encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _display(
    history: Mapping[str, float], clock: Clock, last_actions: LastActions
) -> Generator[Observer]:
    if is_live(sys.stderr):
        from ingot_build_rules.tools.cli.building.live_progress import live_progress

        with live_progress(history, clock, last_actions) as observer:
            yield observer
    else:
        yield PlainLines(_print_line, clock).observe


def _print_line(text: str) -> None:
    console.print_lines(text, file=sys.stderr, flush=True)


class EventWriter:
    """Writes the event stream, each line at once: whoever reads along is never behind."""

    def __init__(self, write: Write, clock: Clock) -> None:
        """Start the stream's clock."""
        self._write: Write | None = write
        self._clock, self._started = clock, clock()

    def observe(self, event: Event) -> None:
        """Write one event; a full disk ends the stream and not the build, a reader that is gone
        ends the command."""
        if self._write is None:
            return
        try:
            self._write(event_line(event, self._clock() - self._started))
        except BrokenPipeError:
            raise
        except OSError as error:
            self._write = None
            _print_line(f"warning: the event stream ends here: {error.strerror}")


class PlainLines:
    """One line per action that ran, ten a second at most: the number in front tells how many there
    were in between."""

    def __init__(self, write: Write, clock: Clock) -> None:
        """Write whole lines."""
        self._write, self._clock = write, clock
        self._ran = 0
        self._held = ""
        self._next = clock()

    def observe(self, event: Event) -> None:
        """Write the lines that the event is worth; a hit is worth none."""
        if isinstance(event, ActionFinished) and event.status == "ran":
            self._ran += 1
            text = console.shortened(action_text(event), _ACTION_LENGTH_MAX)
            self._held = f"ran {self._ran}: {text}, {console.format_seconds(event.seconds)}"
            if self._clock() >= self._next:
                self._release()
        elif isinstance(event, BuildFinished):
            self._release()
        elif text := text_worth(event):
            self._write(text)

    def _release(self) -> None:
        if self._held:
            self._write(self._held)
        self._held = ""
        self._next = self._clock() + SECONDS_BETWEEN_LINES
