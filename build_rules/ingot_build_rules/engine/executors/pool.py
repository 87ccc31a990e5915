"""The executor that runs actions in worker processes on this machine.

In: actions. Out: outcomes, in the order in which they end. Not done here: what a worker does
(``worker``).

Workers are plain Python programs that speak over pipes: ``fork`` would copy a process whose other
threads may hold locks, and ``multiprocessing``'s other ways import the caller's main module again
and pickle. They get digests and read the cache themselves. A worker that dies fails its action,
takes its children with it, and is replaced. Each has a session of its own: what a terminal sends
reaches the scheduler alone, which ends its workers. Their temporary files lie in a folder of the
pool, which goes with it; if the scheduler is killed, too, the next collection of the cache finds
it.
"""

from __future__ import annotations

import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Protocol

from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.executors.executor import Handle
from ingot_build_rules.engine.executors.wire import framed, plain_action, read_message, read_outcome

# There are as many workers as cores: threads of a library's own would only be in their way.
_BOOT = """
import os, sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
end = 4 + int(sys.argv[3])
sys.path[:] = sys.argv[end:]
from ingot_build_rules.engine.executors.worker import serve
serve(*sys.argv[1:3], sys.argv[4:end])
"""
_MADE_COUNT_MAX = 1024
_TOKEN_SECONDS = 0.02


@dataclass(slots=True, eq=False)
class _Worker:
    """``handle``: of the action that it runs, None when idle; ``made``: digests of artifacts that
    it has in memory; ``serves``: it has said that it is there."""

    process: subprocess.Popen[bytes]
    handle: Handle | None = None
    serves: bool = False
    made: dict[str, None] = field(default_factory=dict[str, None])


class Tokens(Protocol):
    """Leave to run jobs, shared with other programs (``jobserver``)."""

    def try_acquire(self) -> bool:
        """Take leave for one more job, if there is one now."""
        ...

    def release(self) -> None:
        """Give back that of a job that has ended."""
        ...


class PoolExecutor:
    """As many workers as it was told to have."""

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
        self._workers: list[_Worker] = []

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
            if _is_readable(worker) and not self._greet(worker):
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
        while worker is not None and not _tell(
            worker, message
        ):  # it died while it had nothing to do
            self._bury(worker)
            worker = self._choose(action)
        if worker is None:
            worker = self._start()
            _tell(worker, message)  # if it dies at once its output ends, and `wait` finds out
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
        busy = {
            _output(worker).fileno(): worker
            for worker in self._workers
            if worker.handle is not None
        }
        if self._tokens is not None and len(busy) < self._size:  # a token may come any time
            timeout_seconds = min(_TOKEN_SECONDS, timeout_seconds or _TOKEN_SECONDS)
        poll = select.poll()
        for descriptor in busy:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)
        workers = [busy[descriptor] for descriptor, _ in ready]
        return [
            self._outcome(worker) for worker in workers if worker.serves or not self._greet(worker)
        ]

    def close(self, *, kill: bool) -> None:
        """End all workers and wait for them."""
        for worker in self._workers:
            if kill:
                _kill(worker)
            _close(worker.process.stdin)
        for worker in self._workers:
            worker.process.wait()
            _close(worker.process.stdout)
        self._workers.clear()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _busy_count(self) -> int:
        return sum(worker.handle is not None for worker in self._workers)

    def _choose(self, action: ActionSpec) -> _Worker | None:
        idle = [worker for worker in self._workers if worker.handle is None]
        return max(
            idle, key=lambda worker: (worker.serves, _known_count(worker, action)), default=None
        )

    def _greet(self, worker: _Worker) -> bool:
        """Hear that a worker has begun to listen; False if it has ended instead. What follows stays
        in the pipe, to be waited for."""
        worker.serves = bool(os.read(_output(worker).fileno(), 1))
        return worker.serves

    def _start(self) -> _Worker:
        addresses = [str(len(self._addresses)), *self._addresses]
        command = [
            sys.executable,
            "-I",
            "-c",
            _BOOT,
            self._rulebook.where,
            self._temporary,
            *addresses,
            *sys.path,
        ]
        try:
            os.makedirs(self._temporary, 0o700, exist_ok=True)
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            why, do = (
                error.strerror or str(error),
                "use fewer processes (-j 1), or check the machine's limits",
            )
            raise ActionError("a worker process cannot be started", command[0], why, do) from error
        self._workers.append(_Worker(process))
        return self._workers[-1]

    def _outcome(self, worker: _Worker) -> tuple[Handle, Outcome]:
        message = read_message(_output(worker))
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

    def _bury(self, worker: _Worker) -> int:
        """Return the status of a worker that has ended; its children end, too."""
        self._workers.remove(worker)
        _close(worker.process.stdin)
        _close(worker.process.stdout)
        os.waitid(
            os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT
        )  # its status is its own, not that of our signal
        _kill(worker)
        return worker.process.wait()


def _known_count(worker: _Worker, action: ActionSpec) -> int:
    return sum(blob.digest in worker.made for blob in action.blobs)


def _death(status: int, where: str) -> ActionError:
    why = f"signal {-status} ended it" if status < 0 else f"it ended with status {status}"
    do = "if memory is short, use fewer processes (-j 1); else report it"
    return ActionError("a worker process died", where, why, do)


def _is_readable(worker: _Worker) -> bool:
    poll = select.poll()
    poll.register(_output(worker), select.POLLIN)
    return bool(poll.poll(0))


def _tell(worker: _Worker, message: object) -> bool:
    assert worker.process.stdin is not None
    try:
        worker.process.stdin.write(framed(message))
        worker.process.stdin.flush()
    except BrokenPipeError:
        return False
    return True


def _kill(worker: _Worker) -> None:
    """End a worker and its children; while nobody has waited for it, its number is nobody
    else's."""
    with suppress(ProcessLookupError):
        os.killpg(worker.process.pid, signal.SIGKILL)


def _close(stream: IO[bytes] | None) -> None:
    with suppress(BrokenPipeError):  # what it still had to say, nobody hears
        if stream is not None:
            stream.close()


def _output(worker: _Worker) -> IO[bytes]:
    assert worker.process.stdout is not None
    return worker.process.stdout
