"""How well the time and the rate of calls are known: an interval for a median over blocks of calls.

In: times of calls, in blocks one after the other. Out: ``BlockMedian``. Not done here: measuring.

Calls that follow each other are alike: a neighbour that is busy for a while slows all of them down.
So not calls but blocks count as observations. An interval between two order statistics of their
medians contains the true median with 95 % confidence whatever the distribution is, and a few slow
blocks do not move it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ingot_runtime.lazy_dataclass import dataclass

CONFIDENCE = 0.95
BLOCKS_MIN = 6
"""With fewer, no two of them enclose the median with this confidence."""
SPREAD_MAX = 0.05
"""A wider interval, as a share of the median, is no number."""


@dataclass(frozen=True, slots=True)
class BlockMedian:
    """The median over blocks, and the ends of the interval around it."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The width of the interval as a share of the median."""
        return (self.high - self.low) / self.median

    @property
    def is_noisy(self) -> bool:
        """Whether nobody should call it a number."""
        return self.spread > SPREAD_MAX


def call_seconds(blocks: Sequence[Sequence[float]]) -> BlockMedian:
    """Return the time of a call, from at least six blocks with at least one call each: over the
    median of each."""
    return _block_median(list(map(statistics.median, blocks)))


def calls_per_second(blocks: Sequence[Sequence[float]]) -> BlockMedian:
    """Return the rate of calls, one after the other: over the mean rate of each block."""
    return _block_median([len(block) / sum(block) for block in blocks])


def block_ratio(
    blocks: Sequence[Sequence[float]], others: Sequence[Sequence[float]]
) -> BlockMedian:
    """Return the time of a call divided by that of another, from blocks of both in turns: over the
    ratio of each pair."""
    pairs = zip(blocks, others, strict=True)
    return _block_median([statistics.median(ours) / statistics.median(its) for ours, its in pairs])


def _block_median(values: Sequence[float]) -> BlockMedian:
    assert len(values) >= BLOCKS_MIN, "too few blocks for an interval"
    ordered, outside = sorted(values), _outside_count(len(values))
    return BlockMedian(statistics.median(ordered), ordered[outside], ordered[-1 - outside])


def _outside_count(count: int) -> int:
    """How many of the smallest observations, and as many of the largest, the interval leaves out.

    The median is below observation k + 1 of n where at most k are below it; each is with
    probability 1/2, so that the binomial distribution says how likely that is.
    """
    tail = (1 - CONFIDENCE) / 2 * 2**count
    below, outside = 1, 0  # binomial coefficients up to k, and k
    while below + math.comb(count, outside + 1) <= tail:
        outside += 1
        below += math.comb(count, outside)
    return outside
