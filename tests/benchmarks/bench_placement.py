"""How far the predictions of ``--place auto`` are from measured times.

In: networks of the onnx package, a kind of device. Out: a table: predicted and measured seconds of a
call for the host alone, the device alone, a cut in the middle, and what auto chooses. Not done
here: changing the numbers (``Backend.costs``).

    python tests/benchmarks/bench_placement.py [--kind null] [--target x86-64-v3] [MODEL...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import ingot_runtime  # noqa: E402
from ingot_build_rules.compilation.compile_model import CompiledModel, compile_model  # noqa: E402
from ingot_build_rules.compilation.options import make_options  # noqa: E402
from ingot_compiler.placement.predicted_time import predicted_picoseconds  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = ("squeezenet", "shufflenet", "inception_v1", "densenet121", "resnet50")
CALLS_MIN = 5
SECONDS = 1.0


def placements(path: Path) -> dict[str, list[tuple[str, str]]]:
    """What is compared: all on one device, a cut in the middle, auto."""
    names = [node.name for node in ModelProto.FromString(path.read_bytes()).graph.node]
    first = names[: len(names) // 2]
    return {
        "host": [],
        "acc": [("*", "acc")],
        "cut": [("*", "acc"), *((name, "host") for name in first)],
        "auto": [("*", "auto")],
    }


def compiled(path: Path, kind: str, target: str, place: Sequence[tuple[str, str]]) -> CompiledModel:
    """A network so placed."""
    return compile_model(path, make_options((target,), devices={"acc": kind}, place=place))


def measured_seconds(bundle: bytes) -> float:
    """The processor time of the process, least of some calls on random inputs, with one thread:
    other work on the machine adds little to it."""
    with ingot_runtime.load(bundle, threads=1) as session:
        numbers = np.random.default_rng(0)
        feed = {
            spec.name: numbers.random([int(size) for size in spec.shape]).astype(spec.dtype)
            for spec in session.inputs
        }
        times: list[float] = []
        end = time.perf_counter() + SECONDS
        while len(times) < CALLS_MIN or time.perf_counter() < end:
            started = time.process_time()
            session.run(feed)
            times.append(time.process_time() - started)
        return min(times)


def main() -> None:
    """Print a row per network and placement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--kind", default="null")
    parser.add_argument("--target", default="x86-64-v3")
    arguments = parser.parse_args()
    for name in arguments.models:
        path = LIGHT / f"light_{name}.onnx"
        for kind, place in placements(path).items():
            made = compiled(path, arguments.kind, arguments.target, place)
            costs = made.compilation.devices.costs()
            predicted = predicted_picoseconds(made.placed, costs) / 1e12
            measured = measured_seconds(made.to_bytes())
            ratio = predicted / measured
            print(f"{name:24} {kind:6} {predicted:.3e} {measured:.3e} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
