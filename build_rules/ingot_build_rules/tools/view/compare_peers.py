"""Calls of a bundle beside those of other engines, measured in turns.

In: how to start each engine. Out: ``Compared``: times with intervals, and the ratio of ours to
theirs. Not done here: the processes (``peer``), text.

A machine is rarely as fast in one minute as in the next, so engines take turns of a few calls each,
and a ratio is that of two turns that follow each other: what slows both changes it little. Its
median over the rounds has an interval like that of any other number (``block_medians``).
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping

from ingot_build_rules.tools.view.block_medians import (
    BLOCKS_MIN,
    BlockMedian,
    block_ratio,
    call_seconds,
)
from ingot_build_rules.tools.view.peer import INGOT, Peer
from ingot_compiler.ir.errors import BuildError
from ingot_runtime.lazy_dataclass import dataclass

_ROUNDS = 60  # short turns: a neighbour that comes and goes meets both alike
_WARM_UP_CALLS = 3

StartPeer = Callable[[], Peer]


@dataclass(frozen=True, slots=True)
class Compared:
    """One engine: ``ratio`` is our time divided by its own, None for ourselves; where it gives no
    number, ``failure`` says why, and the others are None."""

    name: str
    version: str | None = None
    seconds: BlockMedian | None = None
    ratio: BlockMedian | None = None
    failure: str | None = None


@dataclass(slots=True)
class _Runner:
    """An engine that takes turns of ``count`` calls."""

    peer: Peer
    count: int
    blocks: list[list[float]]


def compare_peers(
    starts: Mapping[str, StartPeer], seconds: float
) -> tuple[tuple[Compared, ...], int]:
    """Start each engine, and let them take turns until each has had ``seconds``; return a row for
    each, in their order, and the number of rounds.

    Raises:
        BuildError: the bundle itself does not run.
    """
    failures: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        runners: dict[str, _Runner] = {}
        for name, start in starts.items():
            try:
                peer = stack.enter_context(start())
                typical = statistics.median(peer.times(_WARM_UP_CALLS))
            except BuildError as error:
                if name == INGOT:
                    raise
                failures[name] = f"{error.what}: {error.why}"
                continue
            runners[name] = _Runner(peer, max(1, int(seconds / _ROUNDS / typical)), [])
        rounds = _take_turns(runners, failures, seconds)
    ours = runners[INGOT].blocks
    rows = (
        Compared(name, failure=failures[name])
        if name in failures
        else _row(name, runners[name], ours)
        for name in starts
    )
    return tuple(rows), rounds


def _take_turns(runners: dict[str, _Runner], failures: dict[str, str], seconds: float) -> int:
    """Give each a block of calls in every round; one that fails has no further ones."""
    rounds, until = 0, time.perf_counter() + seconds * len(runners)
    while rounds < BLOCKS_MIN or (rounds < _ROUNDS and time.perf_counter() < until):
        for name, runner in list(runners.items()):
            try:
                runner.blocks.append(runner.peer.times(runner.count))
            except BuildError as error:
                if name == INGOT:
                    raise
                failures[name] = f"{error.what}: {error.why}"
                del runners[name]
        rounds += 1
    return rounds


def _row(name: str, runner: _Runner, ours: list[list[float]]) -> Compared:
    ratio = None if name == INGOT else block_ratio(ours, runner.blocks)
    return Compared(name, runner.peer.version, call_seconds(runner.blocks), ratio)
