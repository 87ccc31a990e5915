"""One token of decoders behind caches of several lengths, beside ONNX Runtime with bound values.

In: ``.onnx`` files with caches as optimum or the GenAI builder names them (``export_decoders`` makes
some), an interpreter with ONNX Runtime. Out: a table of ms per token, the bytes that a token must
read by the time that this took (weights and caches, GB/s), the ratios; the exit code is 1 where one
is above ``RATIO_MAX``. Not done here: right or wrong (``tests/unit/artifacts/test_decoders.py``).

    taskset -c 0 python tests/benchmarks/bench_decode.py --peer-python PYTHON [--threads N]
    [--lengths 128,4096] FOLDER/NAME.onnx ...
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section

import ingot
import ingot_runtime

RATIO_MAX, PAUSE_SECONDS = 0.70, 0.1
LENGTHS = (128, 512, 1024, 2048, 4096)
CHILD = str(Path(__file__).with_name("decode_child.py"))


class Decoder:
    """One engine with one model, in a process of its own."""

    def __init__(self, engine: str, python: str, path: Path, threads: int) -> None:
        """Start it."""
        command = [python, CHILD, engine, str(path), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def times(self, length: int, count: int) -> list[float]:
        """Return the seconds of so many tokens, each behind ``length`` others."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps([length, count])}\n")
        self._process.stdin.flush()
        return cast("list[float]", json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def read_bytes(bundle: Path, model: Path, length: int) -> float:
    """What a token must read: the model's weights and its caches."""
    session = ingot_runtime.load(bundle)
    rows = sum(
        4
        * math.prod(
            dim for axis, dim in enumerate(item.shape) if isinstance(dim, int) and axis != 2
        )
        for item in session.inputs
        if item.name in session.states
    )
    session.close()
    return os.path.getsize(model) + rows * length


def measure(
    path: Path, options: argparse.Namespace, work: Path, rows: list[list[str]]
) -> list[float]:
    """Compile, then time in turns; print a line for each length; return the ratios, and add a row
    of the page."""
    bundle = work / f"{path.stem}.ingot"
    ingot.compile(path, targets=options.target).save(bundle)
    engines = [
        Decoder("ingot", sys.executable, bundle, options.threads),
        Decoder("onnxruntime", options.peer_python, path, options.threads),
    ]
    ratios: list[float] = []
    cells: list[str] = []
    for length in options.lengths:
        times: list[list[float]] = [[], []]
        for engine in engines:
            engine.times(length, 3)
        for _ in range(options.rounds):
            for index, engine in enumerate(engines):
                # ONNX Runtime's workers still spin for a while behind its turn.
                time.sleep(PAUSE_SECONDS if options.threads > 1 else 0)
                engine.times(length, 1)
                times[index] += engine.times(length, options.tokens)
        ours, theirs = map(statistics.median, times)
        speed = read_bytes(bundle, path, length) / ours / 1e9
        ratios.append(ours / theirs)
        cells.append(f"{ours * 1e3:.1f}, {ratios[-1]:.2f}")
        line = f"{path.stem:28} {length:5} {ours * 1e3:9.3f} {theirs * 1e3:9.3f}"
        print(f"{line} {speed:6.1f} {ratios[-1]:6.3f}", flush=True)
    for engine in engines:
        engine.close()
    rows.append([path.stem, *cells])
    return ratios


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=5, help="of each turn")
    parser.add_argument(
        "--target", default="native", help="what to compile for (default: this machine)"
    )
    parser.add_argument(
        "--lengths", type=lambda text: [int(it) for it in text.split(",")], default=LENGTHS
    )
    add_page_option(parser)
    options = parser.parse_args()
    print(f"{'decoder':28} {'keys':>5} {'ingot ms':>9} {'ort ms':>9} {'GB/s':>6} {'ratio':>6}")
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as work:
        ratios = [
            ratio for path in options.models for ratio in measure(path, options, Path(work), rows)
        ]
    if options.page:
        write_section(("ms, by ONNX Runtime; keys:", *map(str, options.lengths)), rows)
    print(f"worst {max(ratios):.3f} (must be <= {RATIO_MAX})")
    return 0 if max(ratios) <= RATIO_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
