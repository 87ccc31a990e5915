"""Quantized networks beside ONNX Runtime, OpenVINO and our own f32: time, size of the bundle,
distance from ONNX Runtime without its optimisations.

In: a folder that ``quantize_models`` wrote, the folder of the networks it was made from, an
interpreter with both peers. Out: a table; the exit code is 1 where a network is above
``RATIO_MAX``. Not done here: quantizing.

    taskset -c 0 python tests/benchmarks/bench_quantized.py --models QUANTIZED --floats MODELS
    [--peer-python PYTHON] [--threads N] [NAME-KIND ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers.turns import interleave
from tests.benchmarks.process_tree import run_measured

from ingot_build_rules.tools.view.peer import Peer

RATIO_MAX, MEAN_MAX, SIZE_MAX = 1.1, 0.95, 1.15
HEADER = ("models", "by the faster peer", "worst", "by our f32", "bundle by its file")
_SLICE_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Result:
    """One network: seconds per call of ours, of our f32 and of each peer; bytes of the bundle by
    those of the model; root mean square distance from the stored answers by theirs."""

    name: str
    ours: float
    floats: float
    theirs: tuple[float, ...]
    size: float
    distance: float

    @property
    def ratio(self) -> float:
        """Our time by the better peer's."""
        return self.ours / min(self.theirs)

    def text(self) -> str:
        """One line of the table."""
        peers = "  ".join(f"{seconds * 1e3:9.3f}" for seconds in self.theirs)
        own = f"{self.ratio:6.3f} {self.ours / self.floats:6.3f} {self.size:6.3f}"
        return f"{self.name:24} {self.ours * 1e3:9.3f}  {peers}   {own}   {self.distance:8.1e}"


def page_rows(results: Sequence[Result], mean: float) -> list[list[str]]:
    """All in one row, and a row for each that takes longer than a peer."""

    def least_to_most(values: Iterable[float]) -> str:
        ordered = sorted(values)
        return f"{ordered[0]:.2f} to {ordered[-1]:.2f}"

    worst = max(results, key=lambda result: result.ratio)
    own = least_to_most(result.ours / result.floats for result in results)
    sizes = least_to_most(result.size for result in results)
    together = [f"{mean:.3f}", f"{worst.ratio:.3f} ({worst.name})", own, sizes]
    slower = (
        [each.name, f"{each.ratio:.3f}", "", f"{each.ours / each.floats:.2f}", f"{each.size:.2f}"]
        for each in results
        if each.ratio > 1
    )
    return [[f"geometric mean of {len(results)}", *together], *slower]


def compiled(model: str, work: str, name: str) -> str:
    """The bundle of a model."""
    bundle, cache = os.path.join(work, f"{name}.ingot"), os.path.join(work, "cache")
    command = ["compile", model, "-o", bundle, "-q", "--cache", cache]
    run_measured([sys.executable, "-m", "ingot", *command])
    return bundle


def distance(bundle: str, folder: str, threads: int) -> float:
    """From the answers that lie beside the model."""
    import ingot_runtime

    inputs, wanted = (
        dict(np.load(os.path.join(folder, file))) for file in ("inputs.npz", "outputs.npz")
    )
    found = ingot_runtime.load(bundle, threads=threads).run(inputs)
    return max(
        float(np.sqrt(((found[key] - want) ** 2).mean() / (want.astype(np.float64) ** 2).mean()))
        for key, want in wanted.items()
    )


def measure(name: str, options: argparse.Namespace, work: str) -> Result:
    """Compile both forms, then time all in turns."""
    folder, source = os.path.join(options.models, name), name.rpartition("-")[0]
    model, inputs = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")
    bundle = compiled(model, work, name)
    floats = compiled(os.path.join(options.floats, source, "model.onnx"), work, source)
    peers = [
        Peer("ingot", sys.executable, bundle, inputs, options.threads),
        Peer("ingot", sys.executable, floats, inputs, options.threads),
        Peer("onnxruntime", options.peer_python, model, inputs, options.threads),
    ]
    if not options.without_openvino:
        peers.append(Peer("openvino", options.peer_python, model, inputs, options.threads))
    ours, own_floats, *theirs = interleave(peers, options.rounds, _SLICE_SECONDS)
    for peer in peers:
        peer.close()
    size = os.path.getsize(bundle) / os.path.getsize(model)
    far = distance(bundle, folder, options.threads)
    os.remove(bundle)
    return Result(name, ours, own_floats, tuple(theirs), size, far)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", required=True)
    parser.add_argument("--floats", required=True)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--without-openvino", action="store_true")
    add_page_option(parser)
    options = parser.parse_args()
    folders = sorted(str(entry.name) for entry in os.scandir(options.models) if entry.is_dir())
    names: list[str] = options.names or folders
    print("network, ms of ingot and its peers, by the better peer, by our f32, size, distance")
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            results.append(measure(name, options, work))
            print(results[-1].text(), flush=True)
    mean = statistics.geometric_mean(result.ratio for result in results)
    worst = max(result.ratio for result in results)
    print(
        f"geometric mean {mean:.3f} of the better peer (must be <= {MEAN_MAX}), worst {worst:.3f}"
    )
    if options.page:
        write_section(HEADER, page_rows(results, mean))
    small = all(result.size <= SIZE_MAX for result in results)
    return 0 if mean <= MEAN_MAX and worst <= RATIO_MAX and small else 1


if __name__ == "__main__":
    sys.exit(main())
