"""Times of a bundle on this machine: whole calls, and launch by launch.

In: sessions and inputs. Out: seconds. Not done here: text.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.view.block_medians import BLOCKS_MIN
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session

_WARM_UP_CALLS = 3
_BLOCKS = 20
_TRACES = 5
_COPY_BYTES, _PART_BYTES = 1 << 26, 1 << 22
_ROUNDS = 64
_STEPS, _FEW_BYTES = 100_000, 1024


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
    """Measure multiply-adds of f32 in registers, and a copy of 64 MiB by numpy in parts of 4 MiB,
    in each of ``threads`` threads at once.

    Each takes less than a millisecond, and the best of 64 counts: what else runs on the machine
    does not lower its limits.
    """
    import numpy as np

    from ingot_compiler.codegen.measured_loops import MeasuredLoops

    loops, source = MeasuredLoops(), np.ones(_COPY_BYTES, np.uint8)
    operations = 2 * loops.sum_count * loops.lanes * _STEPS

    def copier() -> Callable[[int], object]:
        out = np.zeros_like(source)

        def copy_part(number: int) -> None:
            start = number * _PART_BYTES % _COPY_BYTES
            part = slice(start, start + _PART_BYTES)
            np.copyto(out[part], source[part])

        return copy_part

    def adder() -> Callable[[int], object]:
        memory = np.zeros(_FEW_BYTES, np.uint8)
        return lambda _number: loops.run("adds", memory, _STEPS, 0)

    added = _best_seconds([adder() for _ in range(threads)])
    copied = _best_seconds([copier() for _ in range(threads)])
    return MachineLimits(
        sum(operations / seconds for seconds in added),
        sum(2 * _PART_BYTES / seconds for seconds in copied),
    )


def _best_seconds(tasks: Sequence[Callable[[int], object]]) -> list[float]:
    """The least seconds of each task, which takes the number of the round; all run at once, each in
    a thread of its own."""

    def least(task: Callable[[int], object]) -> float:
        times: list[float] = []
        for number in range(_ROUNDS):
            started = time.perf_counter()
            task(number)
            times.append(time.perf_counter() - started)
        return min(times)

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(least, tasks))
