"""Progress of a build: one live line on a terminal, one line per finished rule elsewhere.

In: counts from an executor's observer. Out: text on standard error. Not done here: results, errors.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from ingot_build_rules.engine.naive import Observer


@contextmanager
def show_progress(label: str, *, quiet: bool) -> Generator[Observer | None]:
    """Show the progress of one build while the block runs; nothing when ``quiet``."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _live(label) as observer:
            yield observer
    else:
        plain = _Plain(label)
        yield plain.observe
        plain.finish()


class _Plain:
    """Prints a rule's count when the next rule starts, so that a log has one line per rule and not per result."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._rule = ""
        self._done = 0

    def observe(self, rule: str, done: int, _asked: int) -> None:
        if rule != self._rule:
            self.finish()
        self._rule, self._done = rule, done

    def finish(self) -> None:
        if self._rule:
            count = f" ({self._done})" if self._done > 1 else ""
            print(f"{self._label}: {self._rule}{count}", file=sys.stderr, flush=True)
        self._rule = ""


@contextmanager
def _live(label: str) -> Generator[Observer]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None, count="")

        def observe(rule: str, done: int, asked: int) -> None:
            progress.update(task, description=f"{label}: {rule}", completed=done, total=asked, count=f"{done}/{asked}")

        yield observe
