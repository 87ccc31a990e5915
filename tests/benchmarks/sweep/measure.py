"""One case of the sweep: its results are compared, then both engines are timed in turns.

In: a case, the processes of two engines. Out: a ``Row``, whatever happens. Not done here: starting
the processes (``engine``), the tables (``summary``).
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tests.benchmarks.single_node import Array, Case
from tests.benchmarks.sweep.compare import difference
from tests.benchmarks.sweep.engine import EngineError, EngineProcess
from tests.benchmarks.sweep.known import may_differ

RATIO_MAX = 1.1
_SLICE_SECONDS = 0.008
_CALLS_MAX = 500
_AGAIN = 4  # times the rounds, for a row that is above


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds per call of both engines, which are 0 where there is a fault.

    ``wrong``: the fault is of our engine, or its results differ."""

    family: str
    name: str
    ours: float = 0.0
    theirs: float = 0.0
    fault: str = ""
    wrong: bool = False

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        return self.ours / self.theirs


def measured(
    family: str,
    name: str,
    make: Callable[[], Case],
    engines: Sequence[EngineProcess],
    work: str,
    rounds: int,
    scale: float,
) -> Row:
    """Measure one case; ``scale``: of the tolerances."""
    path = os.path.join(work, "case")
    try:
        model, inputs = make()
    except Exception as error:
        return Row(family, name, fault=f"not made: {error}", wrong=True)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    np.savez(f"{path}.npz", allow_pickle=False, **inputs)
    faults: dict[str, str] = {}
    for engine in engines:
        try:
            engine.open(path)
        except EngineError as error:
            faults[engine.name] = f"{engine.name}: {error}"
    if faults:
        wrong = engines[0].name in faults
        return Row(family, name, fault="; ".join(faults.values()), wrong=wrong)
    ours, theirs = (_results(f"{path}.{engine.name}.npz") for engine in engines)
    if (fault := difference(ours, theirs, scale)) and not may_differ(name):
        return Row(family, name, fault=fault, wrong=True)
    try:
        times = _timed(engines, rounds)
        if times[0] > RATIO_MAX * times[1]:
            times = _timed(engines, _AGAIN * rounds)
    except EngineError as error:
        return Row(family, name, fault=str(error), wrong=True)
    return Row(family, name, *times)


def _results(path: str) -> list[Array]:
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def _timed(engines: Sequence[EngineProcess], rounds: int) -> tuple[float, float]:
    """Both in turns; the medians of the rounds' medians, the first as many times the second as in
    the middle one of the rounds."""
    counts = [_calls(statistics.median(engine.times(3))) for engine in engines]
    times = [
        [statistics.median(engine.times(count)) for engine, count in zip(engines, counts, strict=True)]
        for _ in range(rounds)
    ]  # fmt: skip
    ratio = statistics.median(ours / theirs for ours, theirs in times)
    theirs = statistics.median(row[1] for row in times)
    return ratio * theirs, theirs


def _calls(seconds: float) -> int:
    return max(1, min(_CALLS_MAX, int(_SLICE_SECONDS / seconds)))
