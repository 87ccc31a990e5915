"""The executor of this machine: in this process until enough actions wait to be worth starting others, then in those.

In: actions, how long those that wait would take. Out: outcomes. Not done here: running (``executor``), processes (``pool``).

A worker needs as long to start and to load its modules as many a small build takes in all. While workers start, this process goes on;
once one listens, this process does nothing but schedule.
"""

from __future__ import annotations

from ingot_build_rules.engine.executor import InlineExecutor
from ingot_build_rules.engine.perform import Outcome
from ingot_build_rules.engine.pool import PoolExecutor

_WORTH_SECONDS = 0.3
"""Work that pays for the start of one worker."""


class LocalExecutor:
    """At most ``jobs`` actions at once."""

    def __init__(self, inline: InlineExecutor, pool: PoolExecutor, jobs: int) -> None:
        """Start in this process."""
        self._inline = inline
        self._pool = pool
        self._jobs = jobs
        self._current: InlineExecutor | PoolExecutor = inline

    def room(self, waiting_seconds: float) -> int:
        """How many more actions can start; workers are started if those that wait take long enough."""
        size = min(self._jobs, int(waiting_seconds / _WORTH_SECONDS))
        if size > 1:
            self._pool.grow(size)
        if self._pool.serves():
            self._current = self._pool
        return self._current.room(waiting_seconds)

    def submit(self, number: int, rule: str, inputs: object) -> None:
        """Run an action here and now, or hand it to a worker."""
        self._current.submit(number, rule, inputs)

    def wait(self, timeout_seconds: float | None) -> list[tuple[int, Outcome]]:
        """Return what has ended."""
        return self._inline.wait(0) or self._pool.wait(timeout_seconds)

    def close(self, *, kill: bool) -> None:
        """End all workers."""
        self._pool.close(kill=kill)
