"""What runs in the process of an engine of the sweep: case after case, until it is told no more.

In: the engine's name; then lines of JSON, a file to open or a number of calls. Out: a line of JSON
for each: an empty text or the error for a file, whose results are written beside it; the seconds of
each call for a number. Not done here: starting it (``engine``), comparing (``compare``).

The interpreter of a peer has nothing of Ingot, so this imports nothing of it unless it is asked to.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Call = Callable[[], "list[Any]"]


def open_ingot(path: str, inputs: Mapping[str, Any]) -> Call:
    """Compile a model, and load what was made."""
    bundle = f"{path}.ingot"
    importlib.import_module("ingot").compile(path).save(bundle)
    session = importlib.import_module("ingot_runtime").load(bundle, threads=1)
    return lambda: list(session.run(inputs).values())


def open_onnxruntime(path: str, inputs: Mapping[str, Any]) -> Call:
    """Load a model on the processor, with everything optimised, as it does by default."""
    runtime = importlib.import_module("onnxruntime")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = 1, 1
    settings.log_severity_level = 4
    session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return lambda: list(session.run(None, inputs))


_OPENERS = {"ingot": open_ingot, "onnxruntime": open_onnxruntime}


class Engine:
    """One case at a time."""

    def __init__(self, name: str) -> None:
        """The process has one engine."""
        self._name = name
        self._call: Call | None = None

    def answer(self, asked: str | int) -> object:
        """Open a file, or time calls."""
        if isinstance(asked, int):
            assert self._call is not None
            return _times(self._call, asked)
        try:
            with np.load(f"{asked}.npz") as arrays:
                feed = dict(arrays)
            self._call = _OPENERS[self._name](asked, feed)
            results = [_plain(result) for result in self._call()]
            np.savez(f"{asked}.{self._name}.npz", *results, allow_pickle=False)
        except Exception as error:
            self._call = None
            lines = " ".join(str(error).split())
            return f"{type(error).__name__}: {lines[:300]}"
        return ""


def _plain(result: Any) -> Any:
    """Strings as a type of numpy's, which is written without pickle."""
    array = np.asarray(result)
    return array.astype("U") if array.dtype == object else array


def _times(call: Call, count: int) -> list[float]:
    times: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        engine = Engine(sys.argv[1])
        for line in sys.stdin:
            answers.write(f"{json.dumps(engine.answer(json.loads(line)))}\n")
            answers.flush()
