"""LLVM IR text to machine code: one module, or many in parallel processes.

In: final IR text and a target. Out: ELF objects as bytes, or assembly text.
Not done here: writing IR, linking, caching.

Several processes, because llvmlite holds one lock around LLVM. They are plain Python programs that speak a framed
protocol over pipes: ``fork`` would copy a process whose other threads may hold locks (LLVM's, malloc's), and
``multiprocessing``'s other ways import the caller's main module again and pickle.
"""

import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from threading import Thread
from typing import IO

from ingot_compiler.codegen.llvm import emit_assembly, emit_object
from ingot_compiler.ir.errors import IngotError, InternalError
from ingot_compiler.targets.target import Target, parse_target

_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from ingot_compiler.codegen import object; object.serve(sys.argv[1])"
_FRAME = struct.Struct("<BQ")  # 0: good, 1: refused; length of what follows
_REFUSED = 1


def compile_object(ir_text: str, target: Target, *, verify: bool = False) -> bytes:
    """Compile one module to a relocatable ELF object, position independent, small code model.

    The bytes depend on `ir_text`, `target` and the version of LLVM alone. `verify` runs LLVM's verifier first
    (for debugging: without it, malformed IR may end the process instead of being refused).

    Raises:
        InternalError: LLVM does not accept the text.
    """
    return emit_object(ir_text, target, verify=verify)


def assembly_text(ir_text: str, target: Target) -> str:
    """Compile one module to assembly text, as ``inspect --asm`` shows it."""
    return emit_assembly(ir_text, target)


def compile_objects(modules: Sequence[tuple[str, str]], target: Target, workers: int) -> dict[str, bytes]:
    """Compile `modules`, (name, IR text) each, by at most `workers` processes, this one among them.

    Returns:
        The objects by name, in the order of `modules`: the same bytes for any number of workers.

    Raises:
        InternalError: LLVM refused a module, or ended a worker; of several refused ones, the first is named.
    """
    job = _Job(modules, target)
    helpers = [_start_worker(target) for _ in range(min(workers, len(modules)) - 1)]
    feeders = [Thread(target=job.feed, args=(helper,), daemon=True) for helper in helpers]
    try:
        for feeder in feeders:
            feeder.start()
        job.work()
        for feeder in feeders:
            feeder.join()
    finally:
        _stop(helpers, feeders)
    return job.results()


def serve(target_text: str) -> None:
    """Compile modules from standard input to standard output until it ends: the main function of a worker."""
    # Ctrl-C reaches the whole group: the parent reports it and ends its workers; if it is gone, so is the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    target = parse_target(target_text)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (frame := _read_frame(source)) is not None:
        try:
            status, content = 0, compile_object(frame[1].decode(), target)
        except IngotError as error:
            status, content = _REFUSED, error.why.encode()
        sink.write(_FRAME.pack(status, len(content)) + content)
        sink.flush()


class _Job:
    """What is left to compile, and what came out, shared by the threads of one `compile_objects`."""

    def __init__(self, modules: Sequence[tuple[str, str]], target: Target) -> None:
        self._modules = modules
        self._target = target
        # Long modules first, so that no worker starts one last; a deque's popleft is atomic.
        self._waiting = deque(sorted(range(len(modules)), key=lambda index: (-len(modules[index][1]), index)))
        self._outcomes: dict[int, bytes | IngotError] = {}

    def work(self) -> None:
        """Compile in this process until nothing is left."""
        while (index := self._next()) is not None:
            try:
                self._outcomes[index] = compile_object(self._modules[index][1], self._target)
            except IngotError as error:
                self._outcomes[index] = error

    def feed(self, worker: "subprocess.Popen[bytes]") -> None:
        """Let `worker` compile until nothing is left."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        while (index := self._next()) is not None:
            try:
                content = self._modules[index][1].encode()
                worker.stdin.write(_FRAME.pack(0, len(content)) + content)
                worker.stdin.flush()
                frame = _read_frame(worker.stdout)
            except OSError:
                frame = None
            if frame is None:
                self._outcomes[index] = InternalError("LLVM ended a worker process", why=f"exit status {worker.wait()}")
                return
            self._outcomes[index] = (
                InternalError("LLVM rejected generated code", why=frame[1].decode()) if frame[0] else frame[1]
            )

    def results(self) -> dict[str, bytes]:
        """Return all objects, or raise the first failure in the order of the modules."""
        objects: dict[str, bytes] = {}
        for index, (name, _) in enumerate(self._modules):
            outcome = self._outcomes[index]
            if isinstance(outcome, IngotError):
                outcome.where = f"code of {name}"
                raise outcome
            objects[name] = outcome
        return objects

    def _next(self) -> int | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None


def _start_worker(target: Target) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _BOOT, str(target), *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _stop(helpers: "Sequence[subprocess.Popen[bytes]]", feeders: Sequence[Thread]) -> None:
    """End the workers, also after Ctrl-C: a killed worker gives its feeder an end of file."""
    for helper in helpers:
        helper.kill()
    for feeder in feeders:
        if feeder.is_alive():
            feeder.join()
    for helper in helpers:
        helper.wait()
        for stream in (helper.stdin, helper.stdout):
            if stream is not None:
                stream.close()


def _read_frame(source: IO[bytes]) -> tuple[int, bytes] | None:
    """Read (status, content); None at the end of the stream, also in the middle of a frame."""
    head = source.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    status, size_bytes = _FRAME.unpack(head)
    content = source.read(size_bytes)
    return (status, content) if len(content) == size_bytes else None
