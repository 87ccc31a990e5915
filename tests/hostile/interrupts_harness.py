"""Ctrl-C at one bytecode of load, run and close: what is left afterwards. Run as a script, it tries
many bytecodes.

In: a bundle, a number of threads, how many points, a seed. Out: one line per trial that left
something, then a count. Not done here: deciding (``test_loader_interrupts``).
"""

import dis
import gc
import os
import random
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import ingot_runtime
from ingot_runtime import load_bundle as load_module

X = np.arange(32, dtype=np.float32).reshape(4, 8)
_HANDLER_OPCODES = frozenset((dis.opmap["PUSH_EXC_INFO"], dis.opmap["POP_EXCEPT"]))
_HANDLER_MAPPINGS = 2
"""Text and rest of the one image that may wait for the next load, because its handler is
installed."""


class Interrupt(KeyboardInterrupt):
    """The Ctrl-C of the trial."""


class Interrupter:
    """A trace function that raises at bytecode number `at`, counted over all Python code, the
    library's too."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> "Callable[..., Any]":
        frame.f_trace_opcodes = True
        # Where exception handlers are entered and left (most such instructions have no line) the
        # interpreter never looks for signals, and 3.11 does not unwind an exception that a trace
        # function raises there. Lines count, too: early 3.12 tells of nothing else.
        is_handler = (
            frame.f_code.co_code[frame.f_lasti] in _HANDLER_OPCODES or frame.f_lineno is None
        )  # pyright: ignore[reportUnnecessaryComparison]
        if event in ("opcode", "line") and not is_handler:
            self.count += 1
            if self.count == self.at:
                sys.settrace(None)
                raise Interrupt
        return self


def use(path: str, threads: int) -> None:
    """Load, run twice, run bound, close."""
    session = ingot_runtime.load(path, threads=threads)
    session.run({"x": X})
    session.run({"x": X})
    session.bind({"x": X}).run()
    session.close()


def held(tasks_max: int) -> tuple[int, int, int]:
    """Return the counts of threads, descriptors and mappings of bundles and images; a thread may
    need a moment to leave."""
    for _ in range(2000):
        if len(os.listdir("/proc/self/task")) <= tasks_max:
            break
        time.sleep(0.005)
    tasks = len(os.listdir("/proc/self/task"))
    with open("/proc/self/maps") as file:
        mappings = sum("memfd:ingot" in line or ".ingot" in line for line in file)
    return tasks, len(os.listdir("/proc/self/fd")), mappings


def trial(path: str, threads: int, at: int) -> tuple[str, int]:
    """Return how one use ended, and how many bytecodes it ran."""
    interrupter = Interrupter(at)
    sys.settrace(interrupter)
    try:
        use(path, threads)
    except Interrupt:
        return "interrupted", interrupter.count
    except BaseException as error:
        return f"{type(error).__name__}: {error}", interrupter.count
    finally:
        sys.settrace(None)
    return "done", interrupter.count


def as_requested(requested: int) -> int:
    """All threads that were asked for, so that there are workers on any machine."""
    return requested


def main(path: str, threads: int, points: int, seed: int) -> None:
    """Try `points` bytecodes, all kinds of places alike; print what each trial left."""
    load_module.usable_threads = as_requested  # type: ignore[attr-defined]
    sys.unraisablehook = lambda _: None  # an exception in a finalizer has nowhere else to go
    for _ in range(3):
        use(path, threads)
    gc.collect()
    tasks = len(os.listdir("/proc/self/task"))
    before = held(tasks)
    _, total = trial(path, threads, -1)
    rng = random.Random(seed)
    ends: dict[str, int] = {}
    for at in sorted(rng.sample(range(1, total + 1), min(points, total))):
        end, _ = trial(path, threads, at)
        ends[end] = ends.get(end, 0) + 1
        left = held(tasks)
        if left[:2] != before[:2] or left[2] > before[2] + _HANDLER_MAPPINGS:
            print("left", at, before, left, end)
            before = left
    use(path, threads)
    print("after", held(tasks) == before, ends)


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:5]))
