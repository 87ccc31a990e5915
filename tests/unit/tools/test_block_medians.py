"""What counts as a number: the interval for the median of blocks, and when it is too wide."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_build_rules.tools.view.block_medians import BLOCKS_MIN, call_seconds, calls_per_second


def blocks_of(medians: Sequence[float]) -> list[list[float]]:
    """Blocks of three calls with these medians."""
    return [[value / 2, value, value * 3] for value in medians]


@pytest.mark.parametrize(("count", "outside"), [(6, 0), (8, 0), (9, 1), (20, 5), (40, 13)])
def test_the_interval_is_that_of_the_tables(count: int, outside: int) -> None:
    """The ranks of a 95 % interval for a median, as tables of the sign test have them."""
    found = call_seconds(blocks_of([float(rank) for rank in range(1, count + 1)]))
    assert (found.low, found.high) == (outside + 1, count - outside)


def test_six_blocks_are_the_fewest() -> None:
    """Five observations enclose the median with 93.75 % at most."""
    assert 1 - 2 * 0.5 ** (BLOCKS_MIN - 1) < 0.95 <= 1 - 2 * 0.5**BLOCKS_MIN


def test_a_few_slow_blocks_do_not_matter() -> None:
    """A neighbour that is busy for a quarter of the time moves nothing; for half, there is no
    number."""
    quarter = call_seconds(blocks_of([1.0] * 15 + [9.0] * 5))
    assert (quarter.median, quarter.spread) == (1.0, 0.0)
    assert not quarter.is_noisy
    assert call_seconds(blocks_of([1.0] * 10 + [9.0] * 10)).is_noisy


def test_the_bound() -> None:
    """Five per cent between the ends are a number, six are none."""
    for width, noisy in ((0.05, False), (0.06, True)):
        assert call_seconds(blocks_of([1.0] * 9 + [1.0 + width] * 11)).is_noisy == noisy


def test_the_interval_has_the_true_median_as_often_as_it_says() -> None:
    """95 % of 2,000 intervals from a skewed distribution, within four standard deviations."""
    draw, count = random.Random(1), 2000
    hits = 0
    for _ in range(count):
        found = call_seconds([[draw.expovariate(1.0)] for _ in range(20)])
        hits += found.low <= math.log(2) <= found.high
    exact = 0.9586  # of 20 observations, the sixth from both ends
    assert abs(hits / count - exact) < 4 * math.sqrt(exact * (1 - exact) / count)


def test_the_rate_has_the_slow_calls_in_it() -> None:
    """Calls that wait now and then leave the median as it is, and make the rate noisy."""
    blocks = [[1.0] * 9 + [1.0 + (number % 2) * 10.0] for number in range(20)]
    assert not call_seconds(blocks).is_noisy
    rate = calls_per_second(blocks)
    assert (rate.low, rate.high) == (0.5, 1.0)
    assert rate.is_noisy


@given(st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1), min_size=BLOCKS_MIN))
def test_the_interval_encloses_the_median(blocks: list[list[float]]) -> None:
    """For any blocks, and the order of blocks says nothing."""
    found = call_seconds(blocks)
    assert found.low <= found.median <= found.high
    assert found.median == statistics.median(map(statistics.median, blocks))
    assert found == call_seconds(blocks[::-1])
