"""Bundles on a GPU of NVIDIA: the time of a call, and of each kernel by events of the driver.

In: bundles whose device ``cuda`` runs them; each with inputs beside it, BUNDLE.npz. Out: a table. It
needs the loader, numpy and pycuda alone, so that it runs where the compiler is not. Not done here:
whether results are right (``tests/conformance/run.py --real-driver --device cuda``).

    python tests/benchmarks/bench_cuda.py [--calls N] [--kernels N] BUNDLE...
"""

from __future__ import annotations

import argparse
import collections
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [ROOT, os.path.join(ROOT, "runtime")]

import ingot_runtime  # noqa: E402
from ingot_runtime_devices.cuda import Cuda  # noqa: E402

Feeds = dict[str, Any]
Timed = tuple[str, int, Any, Any]
"""A kernel's name, how many units it ran, events before and behind it."""


def call_seconds(bundle: Path, feeds: Feeds, calls: int) -> tuple[float, list[float]]:
    """How long the bundle took to load, and each call behind the first."""
    start = time.perf_counter()
    with ingot_runtime.load(bundle) as session:
        loaded = time.perf_counter() - start
        session.run(feeds)
        taken = list[float]()
        for _ in range(calls):
            start = time.perf_counter()
            session.run(feeds)
            taken.append(time.perf_counter() - start)
    return loaded, taken


def kernel_times(bundle: Path, feeds: Feeds) -> list[tuple[str, int, list[float]]]:
    """Name, units and milliseconds of each kernel of a call, the slowest first."""
    found = list[Timed]()
    launch: Any = vars(Cuda)["_launch"]
    queues = list[Any]()

    def timed(self: Any, kernel: int, places: Any, scalars: Any, extent: int, grain: int) -> int:
        before = _event(self)
        code: int = launch(self, kernel, places, scalars, extent, grain)
        name = self._library.kernels[kernel].name
        found.append((name, extent, before, _event(self)))
        queues[:] = [self._queue]
        return code

    with (
        mock.patch.object(Cuda, "_launch", timed),
        ingot_runtime.load(bundle, executor="vm") as session,
    ):
        session.run(feeds)
        found.clear()
        session.run(feeds)
        by_name = collections.defaultdict[tuple[str, int], list[float]](list)
        with queues[0].pushed():
            found[-1][3].synchronize()
            for name, extent, before, behind in found:
                by_name[name, extent].append(before.time_till(behind))
            found.clear()  # events end with their context
    return sorted(((*key, times) for key, times in by_name.items()), key=lambda row: -sum(row[2]))


def _event(device: Any) -> Any:
    queue = device._queue
    with queue.pushed():
        return queue.drv.Event().record(queue.stream)


def main(arguments: Sequence[str]) -> int:
    """Print the table of each bundle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundles", nargs="+", type=Path, metavar="BUNDLE")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=10, help="how many of the slowest to print")
    options = parser.parse_args(arguments)
    for bundle in options.bundles:
        feeds = dict(np.load(bundle.with_suffix(bundle.suffix + ".npz")))
        loaded, taken = call_seconds(bundle, feeds, options.calls)
        kernels = kernel_times(bundle, feeds)
        total = sum(sum(times) for _, _, times in kernels)
        count = sum(len(times) for _, _, times in kernels)
        print(
            f"{bundle.name}: loaded in {loaded:.2f} s, a call takes {1e3 * statistics.median(taken):.3f} ms"
        )
        print(f"  {count} launches, which take {total:.3f} ms")
        for name, extent, times in kernels[: options.kernels]:
            print(f"  {sum(times):9.4f} ms {len(times):4d} times {extent:8d} units {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
