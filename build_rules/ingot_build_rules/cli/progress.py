"""Progress of a build: one live line on a terminal, one line per rule elsewhere.

In: actions as they end. Out: text on standard error. Not done here: results, errors.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from ingot_build_rules.engine.action import Action
from ingot_build_rules.engine.scheduler import Observers


@contextmanager
def show_progress(label: str, *, quiet: bool) -> Generator[Observers]:
    """Show the progress of one build while the block runs; nothing when ``quiet``."""
    if quiet:
        yield Observers()
    elif sys.stderr.isatty():
        with _live(label) as observers:
            yield observers
    else:
        plain = _Plain(label)
        yield Observers(ended=plain.ended)
        plain.finish()


class _Plain:
    """Prints a rule's count when another rule's actions end, so that a log has few lines per rule and not one per result."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._rule = ""
        self._done = 0

    def ended(self, action: Action) -> None:
        if action.how != "ran":
            return
        if action.rule.name != self._rule:
            self.finish()
        self._rule, self._done = action.rule.name, self._done + 1

    def finish(self) -> None:
        if self._rule:
            count = f" ({self._done})" if self._done > 1 else ""
            print(f"{self._label}: {self._rule}{count}", file=sys.stderr, flush=True)
        self._rule, self._done = "", 0


@contextmanager
def _live(label: str) -> Generator[Observers]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task, counts = progress.add_task(label, total=None), {"ran": 0, "hit": 0, "failed": 0, "stopped": 0, "": 0}

        def show(action: Action) -> None:
            counts[action.how] += 1
            text = f"{label}: {action.rule.name} ({counts['ran']} ran, {counts['hit']} from the cache)"
            progress.update(task, description=text)

        yield Observers(started=show, ended=show)
