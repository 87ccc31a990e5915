"""One worker process, from the side of the pool that it belongs to.

In: where its rules, its cache and its temporary files are; messages. Out: ``WorkerProcess``. Not
done here: which worker gets which action (``pool``), what it does there (``worker``).

Each has a session of its own: what a terminal sends reaches the scheduler alone, which ends its
workers.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import IO

from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.executors.executor import Handle
from ingot_build_rules.engine.executors.wire import framed
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

# There are as many workers as cores: threads of a library's own would only be in their way.
_BOOT = """
import os, sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
end = 5 + int(sys.argv[4])
sys.path[:] = sys.argv[end:]
from ingot_build_rules.engine.executors.worker import serve
serve(*sys.argv[1:3], sys.argv[5:end], sys.argv[3].split())
"""


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """``handle``: of the action that it runs, None when idle; ``made``: digests of artifacts that
    it has in memory; ``serves``: it has said that it is there."""

    process: subprocess.Popen[bytes]
    handle: Handle | None = None
    serves: bool = False
    made: dict[str, None] = field(default_factory=dict[str, None])

    def output(self) -> IO[bytes]:
        """Where it writes its answers."""
        assert self.process.stdout is not None
        return self.process.stdout

    def is_readable(self) -> bool:
        """Whether it has said something, or has ended; never waits."""
        poll = select.poll()
        poll.register(self.output(), select.POLLIN)
        return bool(poll.poll(0))

    def greet(self) -> bool:
        """Hear that it has begun to listen; False if it has ended instead. What follows stays in
        the pipe, to be waited for."""
        self.serves = bool(os.read(self.output().fileno(), 1))
        return self.serves

    def tell(self, message: object) -> bool:
        """Send it a message; False if it has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(framed(message))
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def known_count(self, action: ActionSpec) -> int:
        """How many inputs of an action it has in memory, as far as anybody knows."""
        return sum(blob.digest in self.made for blob in action.blobs)

    def kill(self) -> None:
        """End it and its children; while nobody has waited for it, its number is nobody else's."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def hang_up(self) -> None:
        """Send nothing more: it ends when it has done what it was told."""
        _close(self.process.stdin)

    def wait(self) -> None:
        """Wait for its end."""
        self.process.wait()
        _close(self.process.stdout)

    def bury(self) -> int:
        """Return the status of a worker that has ended; its children end, too."""
        _close(self.process.stdin)
        _close(self.process.stdout)
        # Its status is its own, not that of our signal.
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        self.kill()
        return self.process.wait()


def start_worker(rulebook: Rulebook, temporary: str, addresses: Sequence[str]) -> WorkerProcess:
    """Start a worker that knows a rulebook, reads blobs at ``addresses`` and keeps its files in
    ``temporary``.

    Raises:
        ActionError: the system starts no more processes.
    """
    outside = " ".join(rulebook.outside)
    arguments = [rulebook.where, temporary, outside, str(len(addresses)), *addresses, *sys.path]
    command = [sys.executable, "-I", "-c", _BOOT, *arguments]
    try:
        os.makedirs(temporary, 0o700, exist_ok=True)
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        why = error.strerror or str(error)
        do = ("use fewer processes (", OptionRef("j", "1"), "), or check the machine's limits")
        raise ActionError("a worker process cannot be started", command[0], why, do) from error
    return WorkerProcess(process)


def _close(stream: IO[bytes] | None) -> None:
    with suppress(BrokenPipeError):  # what it still had to say, nobody hears
        if stream is not None:
            stream.close()
