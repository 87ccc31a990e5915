"""What runs in the process of an engine that decodes: one token behind caches of some length.

In: the engine, a file, threads; then lines of JSON with a length and a number of calls. Out: a line
of JSON for each: the seconds of each call. Not done here: starting it, ratios (``bench_decode``).

ONNX Runtime has its best way: bound values, so that no call makes an array or copies what it is
given; models of ``GroupQueryAttention`` and those whose caches have a fixed length write into the
caches that they read. Nothing of Ingot is
imported here, unless it is the engine.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[], object]
_LENGTH_MAX = 4160
_PROMPT = 512
# By the names of inputs of caches of fixed length: where new rows begin, where they end.
_PLACES = {"write_indices": 0, "nonpad_kv_seqlen": 1}


def _sizes(shape: Any, past: int, new: int, whole: int) -> list[int]:
    """A batch of one; lengths by the names that exporters give them. What has one dimension has one
    element for each sample, or for each token."""
    known = {"sequence_length": new, "past_sequence_length": past, "batch": 1, "batch_size": 1}
    if len(shape) == 1:
        return [known.get(shape[0], whole)]
    return [1, *(dim if isinstance(dim, int) else known.get(dim, whole) for dim in shape[1:])]


def _feed(specs: Any, past: int, new: int) -> dict[str, Any]:
    """Numbers and masks of ones, positions as they are."""
    feed: dict[str, Any] = {}
    for name, shape in specs:
        feed[name] = np.ones(_sizes(shape, past, new, past + new), np.int64)
        if name in ("position_ids", "cache_position"):
            feed[name] = np.arange(past, past + new).reshape(feed[name].shape)
        elif name in _PLACES:
            feed[name][...] = past + _PLACES[name] * new
    return feed


def _is_fixed(specs: Any) -> bool:
    """Whether the caches have a fixed length: the inputs say where they are written."""
    return all(
        isinstance(dim, int)
        for name, shape in specs
        if name.startswith("past")
        for dim in shape[1:]
    )


class Ingot:
    """A sequence: filled by prompts, then one token taken back again and again."""

    def __init__(self, path: str, threads: int) -> None:
        """Load a bundle."""
        runtime = importlib.import_module("ingot_runtime")
        self._session = runtime.load(path, threads=threads)
        states = self._session.states
        self._is_fixed = _is_fixed((it.name, it.shape) for it in self._session.inputs)
        self._specs = [(it.name, it.shape) for it in self._session.inputs if it.name not in states]
        self._logits = {
            it.name: _sizes(it.shape, 0, 1, 1)
            for it in self._session.outputs
            if it.name not in states.values()
        }

    def at(self, length: int) -> Call:
        """Return a call of one token behind so many."""
        sequence = self._session.sequence()
        for past in range(0, length, _PROMPT):
            sequence.run(_feed(self._specs, past, min(_PROMPT, length - past)))
        feed = _feed(self._specs, length, 1)
        outputs = {name: np.empty(shape, np.float32) for name, shape in self._logits.items()}

        def token() -> None:
            sequence.run(feed, outputs)
            if not self._is_fixed:
                sequence.truncate(length)

        return token


class OnnxRuntime:
    """Bound inputs and outputs."""

    def __init__(self, path: str, threads: int) -> None:
        """Load a model on the processor, with everything optimised."""
        runtime = importlib.import_module("onnxruntime")
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
        self._session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        self._value: Any = runtime.OrtValue.ortvalue_from_numpy
        inputs = [(item.name, item.shape) for item in self._session.get_inputs()]
        self._shares = _is_fixed(inputs) or b"GroupQueryAttention" in Path(path).read_bytes()

    def at(self, length: int) -> Call:
        """Return a call of one token behind so many."""
        binding = self._session.io_binding()
        inputs = [(item.name, item.shape) for item in self._session.get_inputs()]
        feed = _feed([item for item in inputs if not item[0].startswith("past")], length, 1)
        rng = np.random.default_rng(0)
        for name, shape in inputs:
            if name.startswith("past"):
                rows = _LENGTH_MAX if self._shares else length
                drawn = rng.standard_normal(_sizes(shape, rows, 1, rows), np.float32)
                feed[name] = drawn
        bound = {name: self._value(array) for name, array in feed.items()}
        for name, value in bound.items():
            binding.bind_ortvalue_input(name, value)
        for item in self._session.get_outputs():
            shared = bound.get(item.name.replace("present", "past_key_values"))
            shared = bound.get(item.name.replace("present", "past")) if shared is None else shared
            if not self._shares or shared is None:
                sizes = _sizes(item.shape, length, 1, length + 1)
                shared = self._value(np.empty(sizes, np.float32))
            binding.bind_ortvalue_output(item.name, shared)
        return lambda: self._session.run_with_iobinding(binding)


_ENGINES: dict[str, type[Ingot | OnnxRuntime]] = {"ingot": Ingot, "onnxruntime": OnnxRuntime}


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
        engine = _ENGINES[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
        call, current = None, -1
        for line in sys.stdin:
            length, count = json.loads(line)
            if call is None or length != current:
                call, current = engine.at(length), length
            answers.write(f"{json.dumps(_times(call, count))}\n")
            answers.flush()
