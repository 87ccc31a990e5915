"""What one core of this machine does in a cycle, as the table of classes of processors has it.

In: nothing. Out: ``MeasuredProcessor``, and where it leaves a class. Not done here: the loops
(``ingot_compiler.codegen.measured_loops``), text.

Each loop is measured in turns with one whose cycles are known, and the least times count, which is
when nothing else runs and the clock is highest. Where the best ones do not agree, there were none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ingot_compiler.codegen.measured_loops import (
    ACCESSES,
    ALIGNMENT_BYTES,
    CHAIN_CYCLES,
    MeasuredLoops,
)
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import message
from ingot_compiler.targets.processors import ProcessorClass
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

_SECONDS = 0.001  # shorter than a turn of another program
_ROUNDS, _BEST = 200, 5
_SPREAD_MAX = 1.04  # of the best rounds
_DIFFERS = 1.2
"""A rate that is so many times another one is another rate: memory's differs by half of that from
day to day, and units are whole numbers."""
_NEAR_BYTES = 1 << 12
_APART = 0.75  # of the time that additions would take in the units of multiply-adds
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_FAR, _FAR_BYTES_MAX = 8, 1 << 26  # times the second cache


@dataclass(frozen=True, slots=True)
class MeasuredProcessor:
    """The columns of ``ProcessorClass``, measured; ``clock``: cycles a second. Sizes are what the
    system says, 0 if it does not; then memory was not measured, and its rates are 0."""

    clock: float
    multiply_adds: float
    adds_apart: bool
    loads: float
    stores: float
    level1_bytes: int
    level1_ways: int
    level2_bytes: int
    level2_rate: float
    far_rate: float


def measure_processor() -> MeasuredProcessor:
    """Measure for some seconds.

    Raises:
        UserError: the rounds differ too much.
    """
    timer = Timer(MeasuredLoops())
    loops = timer.loops
    adds, both = timer.cycles("adds"), timer.cycles("both")
    multiply_adds = loops.sum_count / adds
    joined = (loops.sum_count + loops.other_count) / multiply_adds
    (level1, ways), (level2, _) = (cache_of(level) for level in (1, 2))
    moved = ACCESSES * loops.vector_bytes
    near = 1 << (level2 // 2).bit_length() - 1 if level2 else 0
    far = min(1 << (_FAR * level2).bit_length() - 1, _FAR_BYTES_MAX) if level2 else 0
    return MeasuredProcessor(
        clock=timer.clock,
        multiply_adds=multiply_adds,
        adds_apart=both < adds + (joined - adds) * _APART,
        loads=ACCESSES / timer.cycles("loads", _NEAR_BYTES),
        stores=ACCESSES / timer.cycles("stores", _NEAR_BYTES),
        level1_bytes=level1,
        level1_ways=ways,
        level2_bytes=level2,
        level2_rate=moved / timer.cycles("loads", near) if near else 0.0,
        far_rate=moved / timer.cycles("loads", far) if far else 0.0,
    )


def differences(measured: MeasuredProcessor, row: ProcessorClass) -> tuple[str, ...]:
    """Return the columns in which a machine is not as its class."""
    named = (
        "multiply_adds",
        "loads",
        "stores",
        "level2_rate",
        "far_rate",
        "level1_bytes",
        "level1_ways",
        "level2_bytes",
    )
    found: Mapping[str, tuple[float, float]] = {
        name: (getattr(measured, name), getattr(row, name)) for name in named
    }
    apart = [
        name
        for name, (ours, theirs) in found.items()
        if ours and max(ours, theirs) > _DIFFERS * min(ours, theirs)
    ]
    return (*apart, *(("adds_apart",) if measured.adds_apart != row.adds_apart else ()))


class Timer:
    """Cycles of a round of each loop; ``clock``: the highest that was seen, in cycles a second."""

    def __init__(self, loops: MeasuredLoops) -> None:
        self.loops, self.clock = loops, 0.0
        # Written, since pages that nobody has written are one page of zeros.
        self._memory = np.full(_FAR_BYTES_MAX + ALIGNMENT_BYTES, 0, np.uint8)

    def cycles(self, name: str, size_bytes: int = _NEAR_BYTES) -> float:
        """Measure one loop beside that of cycles."""
        rounds, chain = self._rounds(name, size_bytes), self._rounds("cycles", 0)
        cycle_seconds: list[float] = []
        round_seconds: list[float] = []
        for _ in range(_ROUNDS):
            cycle_seconds.append(self.seconds("cycles", chain, 0) / (chain * CHAIN_CYCLES))
            round_seconds.append(self.seconds(name, rounds, size_bytes) / rounds)
        cycle = _least(cycle_seconds, "cycles")
        self.clock = max(self.clock, 1 / cycle)
        return _least(round_seconds, name) / cycle

    def _rounds(self, name: str, size_bytes: int) -> int:
        """Return how many take as long as a measurement should, and go through the memory."""
        self.seconds(name, 1, size_bytes)
        rounds = max(64, size_bytes // (ACCESSES * self.loops.vector_bytes))
        while (seconds := self.seconds(name, rounds, size_bytes)) < _SECONDS:
            rounds = max(2 * rounds, int(rounds * _SECONDS / max(seconds, 1e-7)))
        return rounds

    def seconds(self, name: str, rounds: int, size_bytes: int) -> float:
        """Return the time of so many rounds."""
        started = time.perf_counter()
        self.loops.run(name, self._memory, rounds, size_bytes or _NEAR_BYTES)
        return time.perf_counter() - started


def _least(seconds: list[float], name: str) -> float:
    best = sorted(seconds)[:_BEST]
    if best[-1] > _SPREAD_MAX * best[0]:
        why = f"the best rounds of the loop of {name} differ by {best[-1] / best[0] - 1:.0%}"
        do = message("end other programs, and try again: ", OptionRef("measure"))
        what = "this machine is too busy to be measured"
        raise UserError(what, OptionRef("measure"), why, do)
    return best[0]


def cache_of(level: int) -> tuple[int, int]:
    """Bytes and ways of a cache of data, zeros where the system does not say them."""
    for folder in sorted(_CACHES.glob("index*")):
        try:
            told = {
                name: (folder / name).read_text().strip()
                for name in ("level", "type", "size", "ways_of_associativity")
            }
            if int(told["level"]) == level and told["type"] != "Instruction":
                return int(told["size"].removesuffix("K")) << 10, int(told["ways_of_associativity"])
        except (OSError, ValueError):
            continue
    return 0, 0
