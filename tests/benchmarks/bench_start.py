"""How soon a program without Python has its first output, beside ONNX Runtime in Python.

In: a model, its inputs, an interpreter with ``onnxruntime``. Out: a table; the exit code is 1 when
the ratio is above 0.15. Not done here: whether outputs are right.

Counted is processor time with one thread, in turns, medians: of the program, all of the process from
its start to its end, inputs read from a file and every byte of the bundle verified; of ONNX Runtime,
from making a session to the first outputs, without interpreter, imports and reading the inputs. Of
each, one warm call is taken off.

    python tests/benchmarks/bench_start.py MODEL.onnx INPUTS.npz --peer-python PYTHON
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import numpy as np

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main as command

RATIO_MAX = 0.15
_WARM_CALLS = 5
_PEER = """
import json, sys, time
import numpy, onnxruntime
with numpy.load(sys.argv[2]) as file:
    feed = {name: file[name] for name in file.files}
started = time.process_time()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
session.run(None, feed)
times = [time.process_time()]
for _ in range(int(sys.argv[3])):
    session.run(None, feed)
    times.append(time.process_time())
warm = sorted(b - a for a, b in zip(times, times[1:]))
print(json.dumps([times[0] - started, warm[len(warm) // 2]]))
"""


def seconds_of_program(arguments: Sequence[str]) -> float:
    """Processor time of a process, from its start to its end."""
    process = os.posix_spawn(
        arguments[0],
        list(arguments),
        {},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"the program ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def seconds_of_peer(python: str, model: str, inputs: str) -> tuple[float, float]:
    """Processor time until the first outputs, and of a warm call."""
    line = [python, "-c", _PEER, model, inputs, str(_WARM_CALLS)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    first, warm = json.loads(done.stdout)
    return first, warm


def seconds_of_call(bundle: str, inputs: str) -> float:
    """Processor time of a warm call of the code that the program has, too."""
    times: list[float] = []
    with ingot_runtime.load(bundle, threads=1) as session, np.load(inputs) as file:
        feed = {name: file[name] for name in file.files}
        for _ in range(_WARM_CALLS):
            started = time.process_time()
            session.run(feed)
            times.append(time.process_time() - started)
    return statistics.median(times[1:])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--optimize", choices=("speed", "size"), default="speed")
    parser.add_argument("--verify", choices=("full", "fast", "code"), default="full")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle, program = os.path.join(folder, "m.ingot"), os.path.join(folder, "m")
        ingot.compile(options.model, optimize=options.optimize).save(bundle)
        run = [program, "--inputs", options.inputs, "--verify", options.verify]
        if command(["export", bundle, "--executable", "-o", program]):
            return 2
        ours: list[float] = []
        peers: list[float] = []
        for _ in range(options.rounds):
            call = seconds_of_call(bundle, options.inputs)
            ours.append(seconds_of_program(run) - call)
            first, warm = seconds_of_peer(options.peer_python, options.model, options.inputs)
            peers.append(first - warm)
    mine, peer = statistics.median(ours), statistics.median(peers)
    print(f"program: {mine * 1e3:.1f} ms ({min(ours) * 1e3:.1f} to {max(ours) * 1e3:.1f})")
    print(f"onnxruntime: {peer * 1e3:.1f} ms ({min(peers) * 1e3:.1f} to {max(peers) * 1e3:.1f})")
    print(f"ratio {mine / peer:.3f}, at most {RATIO_MAX}")
    return int(mine / peer > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
