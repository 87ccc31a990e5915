"""Runs many small tasks in forked worker processes, so that a crash, a hang or a leak costs one
task.

In: task names, a function from a name to JSON. Out: (name, JSON) as they finish. Not done here:
what a task is.

The parent stays single-threaded and never calls native code of ours, so that forking it is safe;
workers start with all that the parent has imported and collected. They speak JSON lines over pipes.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Result = dict[str, Any]
Work = Callable[[str], Result]

_TASKS_PER_PROCESS = 250  # then a fresh one: leaks stay small
_MEMORY_MAX_BYTES = 12 << 30
_TAIL_BYTES = 1500


@dataclass(slots=True)
class _Worker:
    pid: int
    requests: int
    replies: int
    errors: Any
    task: str
    deadline: float
    done: int = 0
    waiting: bytes = field(default=b"")


def run_forked(
    tasks: Sequence[str], work: Work, workers: int, limit_seconds: float
) -> Iterator[tuple[str, Result]]:
    """Yield every task's result; a dead worker gives ``{"category": "crash"}``, one out of time
    ``{"category": "error"}``."""
    left = deque(tasks)
    running: list[_Worker] = []
    try:
        while left or running:
            while left and len(running) < workers:
                worker = _start(work, [each.requests for each in running])
                _give(worker, left.popleft(), limit_seconds)
                running.append(worker)
            yield from _collect(running, left, limit_seconds)
    finally:
        for worker in running:
            _end(worker)


def _collect(
    running: list[_Worker], left: deque[str], limit_seconds: float
) -> Iterator[tuple[str, Result]]:
    wait = max(0.0, min(worker.deadline for worker in running) - time.monotonic())
    ready = select.select([worker.replies for worker in running], [], [], wait)[0]
    for worker in list(running):
        if worker.replies in ready:
            content = os.read(worker.replies, 1 << 16)
            worker.waiting += content
            if not content:
                running.remove(worker)
                yield worker.task, {"category": "crash", "detail": _how_it_ended(worker)}
            elif worker.waiting.endswith(b"\n"):
                yield worker.task, json.loads(worker.waiting)
                worker.waiting = b""
                worker.done += 1
                if left and worker.done < _TASKS_PER_PROCESS:
                    _give(worker, left.popleft(), limit_seconds)
                else:
                    running.remove(worker)
                    _end(worker)
        elif time.monotonic() > worker.deadline:
            running.remove(worker)
            _end(worker)
            yield (
                worker.task,
                {"category": "error", "detail": f"not done after {limit_seconds:g} seconds"},
            )


def _start(work: Work, inherited: Sequence[int]) -> _Worker:
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in (*inherited, request_write, reply_read):
                os.close(descriptor)
            os.dup2(errors.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX_BYTES, _MEMORY_MAX_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            gc.freeze()
            _serve(work, request_read, reply_write)
        finally:
            os._exit(0)
    os.close(request_read)
    os.close(reply_write)
    return _Worker(pid, request_write, reply_read, errors, "", 0.0)


def _serve(work: Work, requests: int, replies: int) -> None:
    with os.fdopen(requests, encoding="utf-8") as source:
        for line in source:
            try:
                result = work(line.rstrip("\n"))
            except Exception:
                result = {"category": "error", "detail": traceback.format_exc()[-_TAIL_BYTES:]}
            content = json.dumps(result).encode() + b"\n"
            while content:
                content = content[os.write(replies, content) :]


def _give(worker: _Worker, task: str, limit_seconds: float) -> None:
    worker.task = task
    worker.deadline = time.monotonic() + limit_seconds
    with contextlib.suppress(
        BrokenPipeError
    ):  # it died between tasks: its replies end, and this task is named
        os.write(worker.requests, task.encode() + b"\n")


def _how_it_ended(worker: _Worker) -> str:
    status = os.waitpid(worker.pid, 0)[1]
    worker.errors.seek(0)
    words = worker.errors.read()[-_TAIL_BYTES:].decode(errors="replace").strip()
    _close(worker)
    if os.WIFSIGNALED(status):
        return f"{signal.Signals(os.WTERMSIG(status)).name} {words}".strip()
    return f"exit status {os.waitstatus_to_exitcode(status)} {words}".strip()


def _end(worker: _Worker) -> None:
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)
    _close(worker)


def _close(worker: _Worker) -> None:
    os.close(worker.requests)
    os.close(worker.replies)
    worker.errors.close()
