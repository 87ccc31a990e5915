"""How far the predictions of ``--place auto`` are from measured times.

In: networks of the onnx package, a kind of device. Out: a table: predicted and measured seconds of a
call for the host alone, the device alone, a cut in the middle, and what auto chooses. Not done
here: changing the numbers (``Backend.costs``).

    taskset -c 1 python tests/benchmarks/bench_placement.py [--kind cpu:1] [MODEL...]

Give an OpenCL driver of processors one thread: ``POCL_MAX_PTHREAD_COUNT=1``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measured_page import add_page_option, write_section  # noqa: E402

import ingot_runtime  # noqa: E402
from ingot_build_rules.making.options.options import make_options  # noqa: E402
from ingot_build_rules.making.stages.compile_model import CompiledModel, compile_model  # noqa: E402
from ingot_compiler.placement.predicted_time import DeviceTimes, predicted_picoseconds  # noqa: E402
from ingot_runtime.executor.session import Session  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = ("squeezenet", "shufflenet", "inception_v1", "densenet121", "resnet50")
ROUND_COUNT, CALL_COUNT = 8, 3
FAR = 0.25


def placements(path: Path) -> dict[str, list[tuple[str, str]]]:
    """What is compared: all on one device, a cut in the middle, auto."""
    nodes = ModelProto.FromString(path.read_bytes()).graph.node
    names = [node.name for node in nodes if node.name]  # those without one make weights
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


@dataclass
class Measured:
    """A session on random inputs, and the processor times of its calls with one thread: other work
    on the machine adds little to the least of them."""

    session: Session
    predicted_seconds: float
    seconds: list[float] = field(default_factory=list[float])

    def call(self, feed: dict[str, npt.NDArray[Any]]) -> None:
        """Call it some times."""
        for _ in range(CALL_COUNT):
            started = time.process_time()
            self.session.run(feed)
            self.seconds.append(time.process_time() - started)


def times_of(made: CompiledModel) -> list[DeviceTimes]:
    """How long its devices are taken to take."""
    table = made.compilation.devices
    hooks = (hook.split(":") for hook in table.product_shares())
    shares = [getattr(import_module(module), name) for module, name in hooks]
    return list(map(DeviceTimes, table.costs(), shares))


def feed_of(session: Session) -> dict[str, npt.NDArray[Any]]:
    """Random inputs."""
    numbers = np.random.default_rng(0)
    return {
        spec.name: numbers.random([int(size) for size in spec.shape]).astype(spec.dtype)
        for spec in session.inputs
    }


def measure(path: Path, kind: str, target: str) -> dict[str, Measured]:
    """All placements of a network, in turns."""
    found: dict[str, Measured] = {}
    with ExitStack() as stack:
        for name, place in placements(path).items():
            made = compiled(path, kind, target, place)
            seconds = predicted_picoseconds(made.placed, times_of(made)) / 1e12
            session = stack.enter_context(ingot_runtime.load(made.to_bytes(), threads=1))
            found[name] = Measured(session, seconds)
        feed = feed_of(found["host"].session)
        for _ in range(ROUND_COUNT):
            for each in found.values():
                each.call(feed)
    return found


def main() -> None:
    """Print a row per network and placement, and how many are far off."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--kind", default="cpu:1")
    parser.add_argument("--target", default="x86-64-v3")
    add_page_option(parser)
    arguments = parser.parse_args()
    far, count = 0, 0
    cells: list[list[str]] = []
    print(f"{'network':14} {'on':5} predicted  measured  ratio")
    for model in arguments.models:
        path = LIGHT / f"light_{model}.onnx"
        for name, each in measure(path, arguments.kind, arguments.target).items():
            predicted, least = each.predicted_seconds * 1e3, min(each.seconds) * 1e3
            row = f"{predicted:6.2f} ms {least:6.2f} ms  {predicted / least:.2f}"
            print(f"{model:14} {name:5} {row}", flush=True)
            ratio = f"{predicted / least:.2f}"
            cells.append([model, name, f"{predicted:.1f} ms", f"{least:.1f} ms", ratio])
            far += abs(predicted / least - 1) > FAR
            count += 1
    if arguments.page:
        write_section(("network", "on", "predicted", "measured", "ratio"), cells)
    print(f"{far} of {count} are more than {FAR:.0%} off")


if __name__ == "__main__":
    main()
