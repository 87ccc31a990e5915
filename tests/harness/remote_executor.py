"""An executor that shares nothing with whoever asks: each action goes as bytes to a process that
has the blobs it names, and no others.

In: actions. Out: outcomes, and the blobs that they name. Not done here: speed; it proves that an
action is complete as data.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.tidy.source import ROOT

from ingot_artifacts.store.blobs import BlobMissing, BlobStore
from ingot_artifacts.store.folder_blobs import FolderBlobs
from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.actions.values import Blobs
from ingot_build_rules.engine.executors.executor import Handle
from ingot_build_rules.engine.executors.wire import framed, plain_action, read_message, read_outcome

_BOOT = "import sys; from tests.harness.remote_worker import serve; serve(*sys.argv[1:])"


class RemoteExecutor:
    """At most ``jobs`` processes, each for one action, in a folder of its own below ``folder``."""

    def __init__(self, rulebook: Rulebook, blobs: Blobs, folder: Path, jobs: int) -> None:
        self._rulebook, self._blobs, self._folder, self._jobs = rulebook, blobs, folder, jobs
        self._running: dict[Handle, tuple[subprocess.Popen[bytes], BlobStore]] = {}
        self._ended: list[tuple[Handle, Outcome]] = []
        self.sent: list[bytes] = []

    def capacity(self) -> int:
        """One action per process."""
        return self._jobs - len(self._running) - len(self._ended)

    def submit(self, action: ActionSpec) -> Handle:
        """Send the blobs, then the action."""
        handle = Handle(action)
        assert not action.reads_files, "its files are elsewhere"
        self.sent.append(framed(plain_action(action)))
        inside = self._folder / str(len(self.sent))
        there = BlobStore([FolderBlobs(str(inside))])
        try:
            for blob in action.blobs:
                content = self._blobs.get(blob.digest)
                assert content.nbytes == blob.size_bytes
                there.put(content)
        except BlobMissing as error:
            self._ended.append((handle, Outcome(lost=error.digest)))
            return handle
        command = [sys.executable, "-c", _BOOT, self._rulebook.where, str(inside)]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._running[handle] = process, there
        with suppress(BrokenPipeError):
            _pipe(process.stdin).write(self.sent[-1])
            _pipe(process.stdin).close()
        return handle

    def cancel(self, handle: Handle) -> None:
        """End the action's process."""
        if handle in self._running:
            self._end(handle, kill=True)
            self._ended.append((handle, Outcome(cancelled=True)))

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
        """Take what has ended, and the blobs of its result."""
        if not self._ended:
            outputs = {
                _pipe(process.stdout).fileno(): handle
                for handle, (process, _) in self._running.items()
            }
            poll = select.poll()
            for descriptor in outputs:
                poll.register(descriptor, select.POLLIN)
            ready = poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)
            self._ended = [self._outcome(outputs[descriptor]) for descriptor, _ in ready]
        ended, self._ended = self._ended, []
        return ended

    def close(self, *, kill: bool) -> None:
        """End all processes, however far they are."""
        del kill
        for handle in list(self._running):
            self._end(handle, kill=True)

    def _outcome(self, handle: Handle) -> tuple[Handle, Outcome]:
        process, there = self._running[handle]
        message = read_message(_pipe(process.stdout))
        self._end(handle, kill=message is None)
        if message is None:
            where = f"rule {handle.action.rule}"
            return handle, Outcome(
                error=ActionError("a process far away died", where, "it says nothing", "try again")
            )
        outcome = read_outcome(message, self._rulebook.errors, Codec(self._rulebook.types))
        for digest in outcome.refs:
            assert self._blobs.put(there.get(digest)) == digest
        return handle, outcome

    def _end(self, handle: Handle, *, kill: bool) -> None:
        process, _ = self._running.pop(handle)
        if kill:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _pipe(process.stdout).close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
