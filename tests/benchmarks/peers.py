"""Peers that stay loaded and are timed in turns: Ingot's loader, ONNX Runtime, OpenVINO, one
process each.

In: a bundle or a model, inputs, threads. Out: seconds per call, on demand. Not done here: what is
compared.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence

_SERVE = """
import json, sys, time
import numpy as np
path, inputs, threads = sys.argv[1], dict(np.load(sys.argv[2])), int(sys.argv[3])
{open}
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    print(json.dumps(times), flush=True)
"""
_INGOT = """
import ingot_runtime
session = ingot_runtime.load(path, threads=threads)
call = lambda: session.run(inputs)
"""
_ONNX_RUNTIME = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
call = lambda: session.run(None, inputs)
"""
_OPENVINO = """
import openvino
core = openvino.Core()
options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
request = core.compile_model(core.read_model(path), "CPU", options).create_infer_request()
call = lambda: request.infer(inputs, share_inputs=True)
"""
OPENERS = {"ingot": _INGOT, "onnxruntime": _ONNX_RUNTIME, "openvino": _OPENVINO}


class Peer:
    """One process that measures calls when it is asked."""

    def __init__(self, kind: str, python: str, path: str, inputs: str, threads: int) -> None:
        """Start it; ``python`` is an interpreter that can import the peer."""
        code = _SERVE.replace("{open}", OPENERS[kind])
        self._process = subprocess.Popen(
            [python, "-c", code, path, inputs, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def times(self, count: int) -> list[float]:
        """Return the seconds of ``count`` calls."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        found: list[float] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def interleave(peers: Sequence[Peer], rounds: int, slice_seconds: float) -> list[float]:
    """Give every peer the same time in turns; return the median seconds per call of each."""
    counts = [max(1, int(slice_seconds / statistics.median(peer.times(3)))) for peer in peers]
    times: list[list[float]] = [[] for _ in peers]
    for _ in range(rounds):
        for index, peer in enumerate(peers):
            times[index] += peer.times(counts[index])
    return [statistics.median(values) for values in times]
