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

from ingot_build_rules.view.block_medians import BLOCKS_MIN

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session

_WARM_UP_CALLS = 3
_BLOCKS = 20
_TRACES = 5
_PRODUCT_SIZE = 1024
_COPY_BYTES = 1 << 26
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """What this machine reached with some threads: f32 operations and bytes, per second."""

    operations_per_second: float
    bytes_per_second: float


def measure_blocks(call: Callable[[], object], seconds: float) -> list[list[float]]:
    """Call repeatedly for at least ``seconds``; return the duration of each call in seconds, in
    blocks one after the other.

    There are 20 blocks that are as long as each other, or fewer, at least six, where a call takes
    longer than such a block.
    """
    for _ in range(_WARM_UP_CALLS):
        call()
    blocks: list[list[float]] = []
    started = time.perf_counter()
    now = started
    while len(blocks) < BLOCKS_MIN or now < started + seconds:
        end = started + (len(blocks) + 1) * seconds / _BLOCKS
        block: list[float] = []
        while not block or now < end:
            before = time.perf_counter()
            call()
            now = time.perf_counter()
            block.append(now - before)
        blocks.append(block)
    return blocks


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return the 10th, 50th, 90th and 99th percentile, in seconds."""
    parts = statistics.quantiles(times, n=100, method="inclusive")
    return {f"p{percent}": parts[percent - 1] for percent in (10, 50, 90, 99)}


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
