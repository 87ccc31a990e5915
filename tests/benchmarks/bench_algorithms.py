"""Single ops for which the algorithm decides, and those that people run around products, beside
ONNX Runtime: one thread, medians of calls in turns.

In: an interpreter with ONNX Runtime. Out: a table; the exit code is 1 when a row is above its
limit. Not done here: the ops (``algorithm_cases``, ``decoder_cases``,
``everyday_cases``, ``further_cases``, ``tree_cases``).

    taskset -c 1 python tests/benchmarks/bench_algorithms.py [--peer-python PYTHON] [--rounds N]
    [PART OF A NAME ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.algorithm_cases import ALGORITHMS
from tests.benchmarks.decoder_cases import DECODERS
from tests.benchmarks.everyday_cases import EVERYDAY
from tests.benchmarks.further_cases import FURTHER
from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers import interleave
from tests.benchmarks.tree_cases import TREES

from ingot_build_rules.tools.view.peer import Peer

CASES = {**ALGORITHMS, **DECODERS, **EVERYDAY, **FURTHER, **TREES}
RATIO_MAX = 1.1
_SLICE_SECONDS = 0.03


def measure(name: str, python: str, rounds: int, work: str) -> tuple[float, float]:
    """Seconds per call: ours, ONNX Runtime's."""
    import ingot

    model, inputs = CASES[name]()
    paths = {suffix: os.path.join(work, f"case.{suffix}") for suffix in ("onnx", "ingot", "npz")}
    with open(paths["onnx"], "wb") as file:
        file.write(model.SerializeToString())
    ingot.compile(model).save(paths["ingot"])
    np.savez(paths["npz"], allow_pickle=False, **inputs)
    peers = [
        Peer("ingot", sys.executable, paths["ingot"], paths["npz"], 1),
        Peer("onnxruntime", python, paths["onnx"], paths["npz"], 1),
    ]
    ours, theirs = interleave(peers, rounds, _SLICE_SECONDS)
    for peer in peers:
        peer.close()
    return ours, theirs


def page_rows(ratios: dict[str, float]) -> list[list[str]]:
    """The geometric mean, the least, and each that takes longer than ONNX Runtime."""
    least = min(ratios, key=lambda name: ratios[name])
    mean = statistics.geometric_mean(ratios.values())
    slower = sorted((name for name in ratios if ratios[name] > 1), key=lambda name: -ratios[name])
    return [
        [f"geometric mean of {len(ratios)}", f"{mean:.3f}"],
        *([name, f"{ratios[name]:.2f}"] for name in (least, *slower)),
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PART")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=15)
    add_page_option(parser)
    options = parser.parse_args()
    ratios: dict[str, float] = {}
    print(f"{'op':26} {'ingot us':>9} {'onnxruntime':>12}   ratio")
    with tempfile.TemporaryDirectory() as work:
        for name in CASES:
            if options.names and not any(part in name for part in options.names):
                continue
            ours, theirs = measure(name, options.peer_python, options.rounds, work)
            ratio = ours / theirs
            ratios[name] = ratio
            verdict = "ok" if ratio <= RATIO_MAX else f"above {RATIO_MAX}"
            print(
                f"{name:26} {ours * 1e6:9.1f} {theirs * 1e6:12.1f}   {ratio:.2f} {verdict}",
                flush=True,
            )
    if options.page and ratios:
        write_section(("op", "by ONNX Runtime"), page_rows(ratios))
    return int(max(ratios.values(), default=0.0) > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
