"""Compiles OpenCL C in a process of its own: a driver's compiler that crashes ends only that.

In: device, source, kernels. Out: an error, or that every kernel compiles and can be launched; the
driver keeps what it made in its own cache, where the caller's driver finds it. Not done here:
running any of them (every launch here is of no units); one of our own is run, once for each device,
since there are drivers that are installed and compile nothing.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
import warnings

from ingot_runtime.errors import IncompatibleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .opencl_library import OpenClLibrary

OPTIONS = ("-cl-std=CL1.2",)
_ERROR_LINES_MAX = 3
_TRIAL = "a kernel of one line"
_TRIAL_SOURCE = """
__kernel void ingot_trial(__global int *out) { out[get_global_id(0)] = 3 * (int)get_global_id(0) + 7; }
"""
_TRIAL_ITEMS = 16


class Builder:
    """The process; it is started by the first request and again where it ended, and ends with this
    one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0  # the process that started it: a fork of that one starts its own
        self._proved: set[tuple[int, str]] = set()
        self._failures: dict[int, str] = {}

    def failure_of(self, index: int) -> str:
        """Return why the driver of device number `index` runs nothing here, "" where it works: it
        has compiled and run a kernel of ours, which is tried once."""
        with self._lock:
            if index not in self._failures:
                self._failures[index] = self._ask({"index": index})
            return self._failures[index]

    def prove(self, index: int, library: "OpenClLibrary", where: str) -> None:
        """Compile the kernels for device number `index` of this machine.

        Raises:
            IncompatibleError: the driver refuses them, or ends the process.
        """
        key = (index, library.source)
        with self._lock:
            if key in self._proved or not library.kernels:
                return
            rows = [
                (kernel.name, kernel.buffer_count, kernel.scalar_count)
                for kernel in library.kernels
            ]
            answer = self._ask({"index": index, "source": library.source, "kernels": rows})
            if answer:
                what = "the driver does not compile a library of OpenCL C"
                do = "use another driver, or put these nodes on the host"
                raise IncompatibleError(what, where, answer, do)
            self._proved.add(key)

    def _ask(self, request: "dict[str, Any]") -> str:
        """Return the error, "" for none."""
        process = self._running()
        assert process.stdin
        assert process.stdout
        kernel = "the program" if "source" in request else _TRIAL
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "done":
                    return str(json.loads(rest))
                kernel = rest
        except OSError:
            pass
        self.close()
        return f"its compiler ended with code {process.returncode} at {kernel}"

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None or self._owner != os.getpid():
            self.close()
            code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as b; b.serve()"
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        """End the process: it has nothing more to read."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.communicate()


BUILDER = Builder()
atexit.register(BUILDER.close)


def serve() -> None:
    """Answer requests of the standard input, a line each, until it ends."""
    for line in sys.stdin:
        try:
            request = json.loads(line)
            error = _prove(request) if "source" in request else _try(request["index"])
        except Exception as problem:  # whatever the driver's binding raises is the answer
            error = _in_short(f"{problem}")
        _tell("done", json.dumps(error))


def _tell(word: str, text: str) -> None:
    sys.stdout.write(f"{word} {text}\n")
    sys.stdout.flush()


def _in_short(text: str) -> str:
    """The first errors of a driver's long text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return "; ".join((errors or lines)[:_ERROR_LINES_MAX])


def _try(index: int) -> str:
    """Build a kernel, run it, and compare what it wrote."""
    import numpy as np
    import pyopencl as cl

    context = cl.Context([devices()[index]])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(build(context, _TRIAL_SOURCE), "ingot_trial")
    found = np.zeros(_TRIAL_ITEMS, np.int32)
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, found.nbytes)
    kernel.set_args(memory)
    cl.enqueue_nd_range_kernel(queue, kernel, (_TRIAL_ITEMS,), (1,))
    cl.enqueue_copy(queue, found, memory)
    expected = 3 * np.arange(_TRIAL_ITEMS) + 7
    if (found == expected).all():
        return ""
    return f"{_TRIAL}: expected {expected[:3].tolist()}..., got {found[:3].tolist()}..."


def _prove(request: "dict[str, Any]") -> str:
    """Build, and launch each kernel over no units."""
    import numpy as np
    import pyopencl as cl

    device = devices()[request["index"]]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = build(context, request["source"])
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
    for name, buffers, scalars in request["kernels"]:
        _tell("kernel", name)
        kernel = cl.Kernel(program, name)
        zero = np.int64(0)
        arguments: list[Any] = [memory, zero] * buffers + [zero] * scalars
        kernel.set_args(*arguments, memory, zero, memory, zero, np.int64(1))
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()
    return ""


def devices() -> "list[Any]":
    """Return the OpenCL devices of this machine, platform by platform; their places are the ids."""
    import pyopencl as cl

    found: list[Any] = []
    for platform in cl.get_platforms():
        try:
            found += platform.get_devices()
        except cl.Error:  # a platform without a device
            continue
    return found


def build(context: "Any", source: str) -> "Any":
    """Return the program; only the driver keeps what it compiles."""
    import pyopencl as cl

    no_cache: Any = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # the source is not the user's
        return cl.Program(context, source).build(list(OPTIONS), cache_dir=no_cache)
