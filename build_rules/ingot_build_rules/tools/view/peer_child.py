"""What runs in the process of a peer: one engine, one model, calls that are timed when asked for.

In: the name of the engine, or a file of Python that opens it; a file, inputs, options as JSON; then
numbers of calls, one a line. Out: a line of JSON for what was opened, then one for each number:
seconds of each call; the results of the first call where the option ``results`` names a file. Not
done here: starting it, comparing (``peer``, ``compare_peers``).

The interpreter may be one in which nothing of Ingot is installed, so this imports nothing of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import runpy
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

Call = Callable[[], Any]
Opener = Callable[[str, dict[str, Any], dict[str, Any]], Call]


def open_ingot(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Call:
    """Load a bundle."""
    runtime = importlib.import_module("ingot_runtime")
    session = runtime.load(path, **options)
    return lambda: session.run(inputs)


def open_onnxruntime(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Call:
    """Load a model on the processor, with everything optimised, as it does by default."""
    runtime = importlib.import_module("onnxruntime")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = options["threads"], 1
    session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def open_openvino(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Call:
    """Compile a model for the processor in f32, for one caller."""
    runtime = importlib.import_module("openvino")
    core = runtime.Core()
    settings = {
        "INFERENCE_NUM_THREADS": options["threads"],
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(path), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True)


_OPENERS: dict[str, tuple[str, Opener]] = {
    "ingot": ("ingot_runtime", open_ingot),
    "onnxruntime": ("onnxruntime", open_onnxruntime),
    "openvino": ("openvino", open_openvino),
}
"""Name -> the module that it needs, and what opens a file."""


def _opener(name: str) -> tuple[str, Opener]:
    """What the table has, or the file of that name: its ``MODULE`` and ``open_model``."""
    if name in _OPENERS:
        return _OPENERS[name]
    found = runpy.run_path(name)
    return found["MODULE"], found["open_model"]


def serve(name: str, path: str, inputs: str, options: str, answers: TextIO) -> None:
    """Open and call once; then answer each line of standard input."""
    module, opener = _opener(name)
    if importlib.util.find_spec(module) is None:
        _answer(answers, {"missing": module})
        return
    try:
        import numpy as np

        with np.load(inputs) as arrays:
            feed = dict(arrays)
        chosen = json.loads(options)
        results = chosen.pop("results", None)
        call = opener(path, feed, chosen)
        found = call()
        if results is not None:
            _write(results, found)
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is told
        lines = str(error).strip().splitlines()
        _answer(answers, {"error": f"{type(error).__name__}: {lines[0] if lines else ''}"})
        return
    version = getattr(sys.modules[module], "__version__", "")
    _answer(answers, {"version": str(version)})
    for line in sys.stdin:
        _answer(answers, _times(call, int(line)))


def _write(path: str, found: Any) -> None:
    """Results by name, or in order, as arrays in their order."""
    import numpy as np

    arrays = cast("Mapping[str, Any]", found).values() if isinstance(found, Mapping) else found
    np.savez(path, *arrays, allow_pickle=False)


def _times(call: Call, count: int) -> list[float]:
    times: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def _answer(answers: TextIO, value: object) -> None:
    answers.write(f"{json.dumps(value)}\n")
    answers.flush()


if __name__ == "__main__":
    if sys.path[:1] == [""]:
        del sys.path[0]  # a file of the folder that is worked in is no library
    # What a library prints must not be taken for an answer.
    with os.fdopen(os.dup(1), "w") as channel:
        os.dup2(2, 1)
        engine, file, arrays, settings = sys.argv[1:]
        serve(engine, file, arrays, settings, channel)
