"""Times of a bundle on this machine: whole calls, and launch by launch.

In: sessions and inputs. Out: seconds. Not done here: text.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session

_WARM_UP_CALLS = 3
_CALLS_MIN = 5
_TRACES = 5
_PRODUCT_SIZE = 1024
_COPY_BYTES = 1 << 26
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """What this machine reached with some threads: f32 operations and bytes, per second."""

    operations_per_second: float
    bytes_per_second: float


def measure(call: Callable[[], object], seconds: float) -> list[float]:
    """EvaluatedCall repeatedly for at least ``seconds``; return the duration of each call in seconds."""
    for _ in range(_WARM_UP_CALLS):
        call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _CALLS_MIN or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return median, 10th and 90th percentile, in seconds."""
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return {"median": statistics.median(times), "p10": tenths[0], "p90": tenths[-1]}


def launch_seconds(session: Session, feed: Mapping[str, Any]) -> dict[int, float]:
    """Return the median seconds of each launch, by its ordinal; ``session`` steps its program
    (``executor="vm"``)."""
    rounds: list[dict[int, float]] = []
    for _ in range(_TRACES):
        session.run(feed)
        rounds.append({ordinal: seconds for ordinal, _, seconds in session.trace()})
    return {
        ordinal: statistics.median(one[ordinal] for one in rounds)
        for ordinal in sorted(rounds[0])
        if all(ordinal in one for one in rounds)
    }


def machine_limits(threads: int) -> MachineLimits:
    """Measure a matrix product (1024 x 1024 x 1024, f32) and a copy (64 MiB) by numpy, in each of
    ``threads`` threads at once; the best of five rounds."""
    import numpy as np

    ones = np.ones((_PRODUCT_SIZE, _PRODUCT_SIZE), np.float32)
    source = np.ones(_COPY_BYTES, np.uint8)
    products = [np.empty_like(ones) for _ in range(threads)]
    copies = [np.empty_like(source) for _ in range(threads)]
    product_seconds = _best([partial(np.matmul, ones, ones, out) for out in products])
    copy_seconds = _best([partial(np.copyto, out, source) for out in copies])
    return MachineLimits(
        threads * 2 * _PRODUCT_SIZE**3 / product_seconds, threads * 2 * _COPY_BYTES / copy_seconds
    )


def _best(tasks: Sequence[Callable[[], object]]) -> float:
    """Seconds until all tasks are done, each in a thread of its own."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        times: list[float] = []
        for _ in range(_ROUNDS):
            started = time.perf_counter()
            for running in [pool.submit(task) for task in tasks]:
                running.result()
            times.append(time.perf_counter() - started)
    return min(times)
