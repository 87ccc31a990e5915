"""The executor of this machine: in this process until enough actions wait to be worth starting
others, then in those.

In: actions, and the backlog of those that are not submitted yet. Out: outcomes. Not done here:
running (``executor``), processes (``pool``).

A worker needs as long to start and to load its modules as many a small build takes in all. While
workers start, this process goes on; once one listens, this process does nothing but schedule. Where
none can be had, it does all of it.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.executors.executor import Executor, Handle, InlineExecutor
from ingot_build_rules.engine.executors.jobserver import JobServer
from ingot_build_rules.engine.executors.pool import PoolExecutor
from ingot_build_rules.engine.executors.registry import Site

_WORTH_SECONDS = 0.3
"""Work that pays for the start of one worker."""


def open_executor(site: Site) -> Executor:
    """Make the executor of this machine; of one job, this process alone."""
    inline = InlineExecutor(site.rulebook, site.values)
    if site.jobs == 1:
        return inline
    addresses = [layer.address for layer in site.layers]
    pool = PoolExecutor(site.rulebook, addresses, site.temporary, _tokens(site))
    return LocalExecutor(inline, pool, site.jobs, site.backlog, site.warn)


def _tokens(site: Site) -> JobServer | None:
    server = JobServer.from_makeflags(site.makeflags)
    if server is not None:
        site.stack.enter_context(server)
        if server.warning:
            site.warn(server.warning)
    return server


class LocalExecutor:
    """At most ``jobs`` actions at once; ``warn`` is told why there are no workers."""

    def __init__(
        self,
        inline: InlineExecutor,
        pool: PoolExecutor,
        jobs: int,
        backlog: Backlog,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Start in this process."""
        self._inline = inline
        self._pool = pool
        self._jobs = jobs
        self._backlog = backlog
        self._warn = warn
        self._current: InlineExecutor | PoolExecutor = inline

    def capacity(self) -> int:
        """How many more actions can start; workers are started if those that wait take long
        enough."""
        if self._jobs > 1:
            worth = int(self._backlog.seconds() / _WORTH_SECONDS)
            try:
                self._look_for_workers(min(self._jobs, self._backlog.count(), worth))
            except ActionError as error:
                self._jobs = 1
                self._warn(f"{error.what}: {error.why}; the build goes on with fewer processes")
        return self._current.capacity()

    def submit(self, action: ActionSpec) -> Handle:
        """Take an action for this process, or hand it to a worker."""
        return self._current.submit(action)

    def cancel(self, handle: Handle) -> None:
        """Drop an action that has not begun; a running one ends as if nothing had been said."""
        self._inline.cancel(handle)
        self._pool.cancel(handle)

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
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
