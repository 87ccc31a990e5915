"""What counts as a number: the interval for the median of blocks, and when it is too wide."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_build_rules.view.block_medians import BLOCKS_MIN, call_time


def blocks_of(medians: Sequence[float]) -> list[list[float]]:
    """Blocks of three calls with these medians."""
    return [[value / 2, value, value * 3] for value in medians]


@pytest.mark.parametrize(("count", "outside"), [(6, 0), (8, 0), (9, 1), (20, 5), (40, 13)])
def test_the_interval_is_that_of_the_tables(count: int, outside: int) -> None:
    """The ranks of a 95 % interval for a median, as tables of the sign test have them."""
    found = call_time(blocks_of([float(rank) for rank in range(1, count + 1)]))
    assert (found.low_seconds, found.high_seconds) == (outside + 1, count - outside)


def test_six_blocks_are_the_fewest() -> None:
    """Five observations enclose the median with 93.75 % at most."""
    assert 1 - 2 * 0.5 ** (BLOCKS_MIN - 1) < 0.95 <= 1 - 2 * 0.5**BLOCKS_MIN


def test_a_few_slow_blocks_do_not_matter() -> None:
    """A neighbour that is busy for a quarter of the time moves nothing; for half, there is no
    number."""
    quarter = call_time(blocks_of([1.0] * 15 + [9.0] * 5))
    assert (quarter.median_seconds, quarter.spread) == (1.0, 0.0)
    assert not quarter.is_noisy
    assert call_time(blocks_of([1.0] * 10 + [9.0] * 10)).is_noisy


def test_the_bound() -> None:
    """Five per cent between the ends are a number, six are none."""
    for width, noisy in ((0.05, False), (0.06, True)):
        assert call_time(blocks_of([1.0] * 9 + [1.0 + width] * 11)).is_noisy == noisy


def test_the_interval_has_the_true_median_as_often_as_it_says() -> None:
    """95 % of 2,000 intervals from a skewed distribution, within four standard deviations."""
    draw, count = random.Random(1), 2000
    hits = 0
    for _ in range(count):
        found = call_time([[draw.expovariate(1.0)] for _ in range(20)])
        hits += found.low_seconds <= math.log(2) <= found.high_seconds
    exact = 0.9586  # of 20 observations, the sixth from both ends
    assert abs(hits / count - exact) < 4 * math.sqrt(exact * (1 - exact) / count)


@given(st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1), min_size=BLOCKS_MIN))
def test_the_interval_encloses_the_median(blocks: list[list[float]]) -> None:
    """For any blocks, and the order of blocks says nothing."""
    found = call_time(blocks)
    assert found.low_seconds <= found.median_seconds <= found.high_seconds
    assert found.median_seconds == statistics.median(map(statistics.median, blocks))
    assert found == call_time(blocks[::-1])
