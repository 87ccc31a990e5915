"""Whole networks beside other engines, each in a pair of its own: time, error, compile time, memory.

In: a folder of models (``NAME/model.onnx``, ``inputs.npz``, ``outputs.npz``), an interpreter with
ONNX Runtime and OpenVINO, a folder of environments with the others (``peers/install.py``). Out: a
table; the exit code is 1 when a network is wrong or above ``RATIO_MAX`` of the fastest one's time.
Not done here: single ops (``bench_single_ops``), how a pair is timed (``peers.pairs``).

    taskset -c 0 python tests/benchmarks/bench_zoo.py --models FOLDER [--peer-python PYTHON]
    [--peers FOLDER] [--threads N] [--target TARGET] [--precision bf16] [--against ENGINE,..]
    [NAME ...]

Engines that shall keep to AVX2 as ``--target x86-64-v3`` does are held to it by the environment:
``ONEDNN_MAX_CPU_ISA=AVX2`` for OpenVINO.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers.pairs import NAMES, Installed, Pair, timed_pair
from tests.benchmarks.process_tree import run_measured

from ingot_build_rules.tools.view.peer import PEERS

RATIO_MAX, MEAN_MAX = 1.8, 1.15
ERRORS_MAX = {"f32": 1e-4, "bf16": 2e-2}


@dataclass(frozen=True, slots=True)
class Result:
    """One network: its pairs with other engines, relative error and its limit, compile seconds,
    peak bytes."""

    name: str
    pairs: tuple[Pair, ...]
    error: float
    error_max: float
    compile_seconds: float
    peak_bytes: int

    @property
    def ratio(self) -> float:
        """Our time by the fastest engine's of those whose error is below our limit; NaN where there
        is none."""
        exact = (pair.ratio for pair in self.pairs if pair.error < self.error_max)
        return max(exact, default=math.nan)

    def cells(self) -> list[str]:
        """One row of the page."""
        return [
            self.name,
            *(pair.cell() for pair in self.pairs),
            f"{self.ratio:.3f}",
            f"{self.error:.1e}",
            f"{self.compile_seconds:.1f} s",
            f"{self.peak_bytes / 1e6:.0f} MB",
        ]

    def text(self) -> str:
        """One line for the network, and one for each of its pairs."""
        memory = f"{self.compile_seconds:.1f} s, {self.peak_bytes / 1e6:.0f} MB"
        lines = [f"{self.name}: {self.ratio:.3f}, error {self.error:.1e}, {memory}"]
        for pair in self.pairs:
            times = f"{pair.ours * 1e3:9.3f} by {pair.theirs * 1e3:9.3f} ms = {pair.ratio:6.3f}"
            said = pair.failure or f"{times}, its error {pair.error:.1e}"
            lines.append(f"  {pair.engine:14} {said}")
        return "\n".join(lines)


def page_rows(
    engines: Sequence[str], results: Sequence[Result]
) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the page."""
    header = ["network", *(f"by {engine}" for engine in engines), "by the fastest one"]
    header += ["relative error", "compile, cold", "peak PSS of compiling"]
    columns = [
        *([result.pairs[at].ratio for result in results] for at in range(len(engines))),
        [result.ratio for result in results],
    ]
    means = [f"{_mean(column):.3f}" for column in columns]
    return header, [*(result.cells() for result in results), ["geometric mean", *means, "", "", ""]]


def _mean(ratios: Sequence[float]) -> float:
    counted = [ratio for ratio in ratios if not math.isnan(ratio)]
    return statistics.geometric_mean(counted) if counted else math.nan


def relative_error(bundle: str, folder: str, threads: int) -> float:
    """Largest difference from the stored outputs by their largest value; over aot and vm, which
    must have equal bits."""
    import ingot_runtime

    inputs, wanted = (
        dict(np.load(os.path.join(folder, file))) for file in ("inputs.npz", "outputs.npz")
    )
    found = [
        ingot_runtime.load(bundle, threads=threads, executor=kind).run(inputs)
        for kind in ("aot", "vm")
    ]
    if any(not np.array_equal(found[0][key], found[1][key], equal_nan=True) for key in wanted):
        return math.inf
    return max(
        float(np.abs(found[0][key] - want).max() / (np.abs(want).max() + 1e-30))
        for key, want in wanted.items()
    )


def measure(name: str, options: argparse.Namespace, work: str) -> Result:
    """Compile cold, check, then time beside one engine after the other."""
    folder = os.path.join(options.models, name)
    bundle = os.path.join(work, f"{name}.ingot")
    cache = os.path.join(work, "cache")
    model = os.path.join(folder, "model.onnx")
    command = [sys.executable, "-m", "ingot", "compile", model, "-o", bundle, "-q"]
    target = ["--target", options.target] if options.target else []
    precision = ["--precision", options.precision]
    compiled = run_measured([*command, "--cache", cache, *target, *precision])
    shutil.rmtree(cache)
    error = relative_error(bundle, folder, options.threads)
    installed = Installed(options.peer_python, options.peers)
    pairs = tuple(
        timed_pair(engine, installed, bundle, folder, options.threads, options.rounds)
        for engine in options.against
    )
    os.remove(bundle)
    error_max = ERRORS_MAX[options.precision]
    return Result(name, pairs, error, error_max, compiled.seconds, compiled.peak_pss_bytes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", required=True)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--peers", help="the folder of environments that peers/install.py made")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--target", help="what to compile for (default: this machine)")
    parser.add_argument("--precision", choices=tuple(ERRORS_MAX), default="f32")
    parser.add_argument(
        "--against",
        type=lambda text: tuple(text.split(",")),
        default=PEERS,
        help=f"engines: {', '.join(NAMES)} (default: {','.join(PEERS)})",
    )
    add_page_option(parser)
    options = parser.parse_args()
    for engine in options.against:
        if engine not in NAMES:
            parser.error(f"unknown engine {engine!r}; known are: {', '.join(NAMES)}")
    return options


def main() -> int:
    """Measure and print."""
    options = _arguments()
    names: list[str] = options.names or sorted(os.listdir(str(options.models)))
    results: list[Result] = []
    print("network: our time by the fastest engine's, our error, seconds and peak PSS of compiling")
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            results.append(measure(name, options, work))
            print(results[-1].text(), flush=True)
    if options.page:
        write_section(*page_rows(options.against, results))
    mean, worst = _mean([r.ratio for r in results]), max(r.ratio for r in results)
    print(f"geometric mean {mean:.3f} of the fastest engine (must be <= {MEAN_MAX}); {worst=:.3f}")
    exact = all(result.error < result.error_max for result in results)
    return 0 if exact and mean <= MEAN_MAX and worst <= RATIO_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
