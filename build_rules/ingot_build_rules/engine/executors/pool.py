"""The executor that runs actions in worker processes on this machine.

In: actions. Out: outcomes, in the order in which they end. Not done here: one worker's process
(``worker_process``), what it does (``worker``).

Workers are plain Python programs that speak over pipes: ``fork`` would copy a process whose other
threads may hold locks, and ``multiprocessing``'s other ways import the caller's main module again
and pickle. They get digests and read the cache themselves. A worker that dies fails its action,
takes its children with it, and is replaced. Their temporary files lie in a folder of the pool,
which goes with it; if the scheduler is killed, too, the next collection of the cache finds it.
"""

from __future__ import annotations

import os
import secrets
import select
import shutil
from collections.abc import Sequence
from typing import Protocol

from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.executors.executor import Handle
from ingot_build_rules.engine.executors.wire import plain_action, read_message, read_outcome
from ingot_build_rules.engine.executors.worker_process import WorkerProcess, start_worker
from ingot_runtime.option_ref import OptionRef

_MADE_COUNT_MAX = 1024
_TOKEN_SECONDS = 0.02


class Tokens(Protocol):
    """Leave to run jobs, shared with other programs (``jobserver``)."""

    def try_acquire(self) -> bool:
        """Take leave for one more job, if there is one now."""
        ...

    def release(self) -> None:
        """Give back that of a job that has ended."""
        ...


class PoolExecutor:
    """An executor with a fixed number of worker processes."""

    def __init__(
        self,
        rulebook: Rulebook,
        addresses: Sequence[str],
        temporary: str,
        tokens: Tokens | None = None,
    ) -> None:
        """Workers open the blobs of a cache by the ``addresses`` of its layers; their temporary
        files lie in a folder of their own in ``temporary``; ``tokens`` limits jobs further."""
        self._rulebook = rulebook
        self._codec = Codec(rulebook.types)  # of errors
        self._addresses = list(addresses)
        self._temporary = os.path.join(temporary, secrets.token_hex(12))
        self._size = 0
        self._tokens = tokens
        self._has_token = False
        self._workers: list[WorkerProcess] = []

    def grow(self, size: int) -> None:
        """Have at least so many workers; they start beside what runs meanwhile, where tokens are
        lent each when it has one."""
        self._size = max(self._size, size)
        while len(self._workers) < (self._size if self._tokens is None else 1):
            self._start()

    def serves(self) -> bool:
        """Whether any worker has begun to listen; never waits.

        Raises:
            ActionError: a worker ended before it did.
        """
        for worker in [worker for worker in self._workers if not worker.serves]:
            if worker.is_readable() and not worker.greet():
                raise _death(self._bury(worker), "before its first action")
        return any(worker.serves for worker in self._workers)

    def capacity(self) -> int:
        """How many workers have nothing to do; where tokens are lent, the one for the next action
        is taken now."""
        free = self._size - self._busy_count()
        if self._tokens is None or free <= 0:
            return free
        self._has_token = self._has_token or self._tokens.try_acquire()
        return int(self._has_token)

    def submit(self, action: ActionSpec) -> Handle:
        """Hand an action to the worker that has its inputs in memory, if it is idle, or to any."""
        self._has_token = False
        message = plain_action(action)
        worker = self._choose(action)
        while worker is not None and not worker.tell(message):
            self._bury(worker)  # it died while it had nothing to do
            worker = self._choose(action)
        if worker is None:
            worker = self._start()
            worker.tell(message)  # if it dies at once its output ends, and `wait` finds out
        worker.handle = Handle(action)
        return worker.handle

    def cancel(self, handle: Handle) -> None:
        """Let the action end: its worker would have to load everything anew, and the next build has
        use for the result."""

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
        """Return what has ended."""
        if self._tokens is not None and self._has_token:  # others may need it meanwhile
            self._tokens.release()
            self._has_token = False
        running = [worker for worker in self._workers if worker.handle is not None]
        busy = {worker.output().fileno(): worker for worker in running}
        if self._tokens is not None and len(busy) < self._size:  # a token may come any time
            timeout_seconds = min(_TOKEN_SECONDS, timeout_seconds or _TOKEN_SECONDS)
        poll = select.poll()
        for descriptor in busy:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)
        workers = [busy[descriptor] for descriptor, _ in ready]
        return [self._outcome(worker) for worker in workers if worker.serves or not worker.greet()]

    def close(self, *, kill: bool) -> None:
        """End all workers and wait for them."""
        for worker in self._workers:
            if kill:
                worker.kill()
            worker.hang_up()
        for worker in self._workers:
            worker.wait()
        self._workers.clear()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _busy_count(self) -> int:
        return sum(worker.handle is not None for worker in self._workers)

    def _choose(self, action: ActionSpec) -> WorkerProcess | None:
        idle = [worker for worker in self._workers if worker.handle is None]
        return max(
            idle, key=lambda worker: (worker.serves, worker.known_count(action)), default=None
        )

    def _start(self) -> WorkerProcess:
        self._workers.append(start_worker(self._rulebook, self._temporary, self._addresses))
        return self._workers[-1]

    def _outcome(self, worker: WorkerProcess) -> tuple[Handle, Outcome]:
        message = read_message(worker.output())
        handle, worker.handle = worker.handle, None
        assert handle is not None
        if self._tokens is not None:
            self._tokens.release()
        if message is None:
            return handle, Outcome(error=_death(self._bury(worker), f"rule {handle.action.rule}"))
        outcome = read_outcome(message, self._rulebook.errors, self._codec)
        worker.made.update(dict.fromkeys(outcome.refs))
        while len(worker.made) > _MADE_COUNT_MAX:
            del worker.made[next(iter(worker.made))]
        return handle, outcome

    def _bury(self, worker: WorkerProcess) -> int:
        """Return the status of a worker that has ended, which belongs to the pool no more."""
        self._workers.remove(worker)
        return worker.bury()


def _death(status: int, where: str) -> ActionError:
    why = f"signal {-status} ended it" if status < 0 else f"it ended with status {status}"
    do = ("if memory is short, use fewer processes (", OptionRef("j", "1"), "); else report it")
    return ActionError("a worker process died", where, why, do)
