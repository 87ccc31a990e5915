"""Whole networks beside the better of the engines they are compared with: time, error, compile time, memory.

In: a folder of models (``NAME/model.onnx``, ``inputs.npz``, ``outputs.npz``), an interpreter with
the engines. Out: a table; the exit code is 1 when a network is wrong or above ``RATIO_MAX``. Not
done here: single ops (``bench_single_ops``).

    taskset -c 0 python tests/benchmarks/bench_zoo.py --models FOLDER [--peer-python PYTHON]
    [--threads N] [--target TARGET] [--against ENGINE,..] [NAME ...]

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
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers import interleave
from tests.benchmarks.process_tree import run_measured

from ingot_build_rules.tools.view.peer import PEERS, Peer

RATIO_MAX, MEAN_MAX, ERROR_MAX = 1.8, 1.15, 1e-4
HEADER = (
    "network",
    "by the faster peer",
    "relative error",
    "compile, cold",
    "peak PSS of compiling",
)


@dataclass(frozen=True, slots=True)
class Result:
    """One network: seconds per call of ours and of each peer, relative error, compile seconds, peak
    bytes."""

    name: str
    ours: float
    theirs: tuple[float, ...]
    error: float
    compile_seconds: float
    peak_bytes: int

    @property
    def ratio(self) -> float:
        """Our time by the better peer's."""
        return self.ours / min(self.theirs)

    def cells(self) -> list[str]:
        """One row of the page."""
        return [
            self.name,
            f"{self.ratio:.3f}",
            f"{self.error:.1e}",
            f"{self.compile_seconds:.1f} s",
            f"{self.peak_bytes / 1e6:.0f} MB",
        ]

    def text(self) -> str:
        """One line of the table."""
        peers = "  ".join(f"{seconds * 1e3:9.3f}" for seconds in self.theirs)
        memory = f"{self.compile_seconds:6.1f} s {self.peak_bytes / 1e6:7.0f} MB"
        return f"{self.name:16} {self.ours * 1e3:9.3f}  {peers}   {self.ratio:6.3f}   {self.error:8.1e} {memory}"


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
    """Compile cold, check, then time in turns."""
    folder = os.path.join(options.models, name)
    model, inputs = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")
    bundle = os.path.join(work, f"{name}.ingot")
    cache = os.path.join(work, "cache")
    command = [sys.executable, "-m", "ingot", "compile", model, "-o", bundle, "-q"]
    target = ["--target", options.target] if options.target else []
    compiled = run_measured([*command, "--cache", cache, *target])
    shutil.rmtree(cache)
    error = relative_error(bundle, folder, options.threads)
    peers = [Peer("ingot", sys.executable, bundle, inputs, options.threads)]
    peers += [
        Peer(kind, options.peer_python, model, inputs, options.threads) for kind in options.against
    ]
    ours, *theirs = interleave(peers, options.rounds, 0.15)
    for peer in peers:
        peer.close()
    os.remove(bundle)
    return Result(name, ours, tuple(theirs), error, compiled.seconds, compiled.peak_pss_bytes)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", required=True)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--target", help="what to compile for (default: this machine)")
    parser.add_argument("--against", type=lambda text: tuple(text.split(",")), default=PEERS)
    add_page_option(parser)
    options = parser.parse_args()
    names: list[str] = options.names or sorted(os.listdir(str(options.models)))
    peers = "  ".join(f"{name:>9}" for name in options.against)
    print(
        f"{'network':16} {'ingot ms':>9}  {peers}   {'ratio':>6}   {'error':>8}  compile, peak PSS"
    )
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            results.append(measure(name, options, work))
            print(results[-1].text(), flush=True)
    mean = statistics.geometric_mean(result.ratio for result in results)
    if options.page:
        rows = [*(result.cells() for result in results)]
        write_section(HEADER, [*rows, ["geometric mean", f"{mean:.3f}", "", "", ""]])
    print(
        f"geometric mean {mean:.3f} of the better peer (must be <= {MEAN_MAX}); worst {max(r.ratio for r in results):.3f}"
    )
    good = mean <= MEAN_MAX and all(r.ratio <= RATIO_MAX and r.error < ERROR_MAX for r in results)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
