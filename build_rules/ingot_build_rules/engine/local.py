"""The executor of this machine: in this process until enough actions wait to be worth starting others, then in those.

In: actions, how many wait and how long they would take. Out: outcomes. Not done here: running (``executor``), processes (``pool``).

A worker needs as long to start and to load its modules as many a small build takes in all. While workers start, this process goes on;
once one listens, this process does nothing but schedule. Where none can be had, it does all of it.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_build_rules.engine.errors import ActionError
from ingot_build_rules.engine.executor import InlineExecutor
from ingot_build_rules.engine.perform import Outcome
from ingot_build_rules.engine.pool import PoolExecutor

_WORTH_SECONDS = 0.3
"""Work that pays for the start of one worker."""


class LocalExecutor:
    """At most ``jobs`` actions at once; ``warn`` is told why there are no workers."""

    def __init__(
        self, inline: InlineExecutor, pool: PoolExecutor, jobs: int, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Start in this process."""
        self._inline = inline
        self._pool = pool
        self._jobs = jobs
        self._warn = warn
        self._current: InlineExecutor | PoolExecutor = inline

    def room(self, waiting_count: int, waiting_seconds: float) -> int:
        """How many more actions can start; workers are started if those that wait take long enough."""
        if self._jobs > 1:
            try:
                self._look_for_workers(min(self._jobs, waiting_count, int(waiting_seconds / _WORTH_SECONDS)))
            except ActionError as error:
                self._jobs = 1
                self._warn(f"{error.what}: {error.why}; the build goes on with fewer processes")
        return self._current.room(waiting_count, waiting_seconds)

    def submit(self, number: int, rule: str, inputs: object) -> None:
        """Run an action here and now, or hand it to a worker."""
        self._current.submit(number, rule, inputs)

    def wait(self, timeout_seconds: float | None) -> list[tuple[int, Outcome]]:
        """Return what has ended."""
        return self._inline.wait(0) or self._pool.wait(timeout_seconds)

    def close(self, *, kill: bool) -> None:
        """End all workers."""
        self._inline.close(kill=kill)
        self._pool.close(kill=kill)

    def _look_for_workers(self, size: int) -> None:
        if size > 1:
            self._pool.grow(size)
        if self._current is self._inline and self._pool.serves():
            self._current = self._pool
