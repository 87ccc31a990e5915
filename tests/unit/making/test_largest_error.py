"""What a failed test tells: the largest error, where it is, and what would have been allowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ingot_build_rules.making.testing.largest_error import Tolerance, error_text, largest_error

EXACT = Tolerance(0.0, 0.0)
INF, NAN = math.inf, math.nan


def told(expected: Any, got: Any, tolerance: Tolerance = EXACT) -> str:
    """Compare, and return the text."""
    return error_text(largest_error(np.asarray(expected), np.asarray(got), tolerance), tolerance)


@pytest.mark.parametrize(
    ("expected", "got", "index", "error"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.5], [3.25, 4.0]], (0, 1), 0.5),
        (1.0, 3.0, (), 2.0),
        ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF], (0,), 0.0),
        ([1.0, 2.0], [1.5, NAN], (1,), INF),
        ([1.0, INF], [1.5, -INF], (1,), INF),
        ([0, 7], [0, 4], (1,), 3.0),
        (np.array([-128, 5], np.int8), np.array([127, 5], np.int8), (0,), 255.0),
        (np.array([2**63 - 1, 0]), np.array([-(2**63), 0]), (0,), 2.0**64),
        (np.array([2**53 + 1]), np.array([2**53]), (0,), 1.0),
        ([True, False], [True, True], (1,), INF),
        (np.zeros((0, 3)), np.zeros((0, 3)), (), 0.0),
        (np.array([1e308]), np.array([-1e308]), (0,), INF),
    ],
)
def test_the_largest_error_is_found(
    expected: Any, got: Any, index: tuple[int, ...], error: float
) -> None:
    """Of any element type and rank; exact for integers, infinite where a difference says
    nothing."""
    found = largest_error(np.asarray(expected), np.asarray(got), EXACT)
    assert (found.index, found.error) == (index, error)
    assert bool(found.beyond) == (error > 0)


def test_floats_alone_may_be_off() -> None:
    """By a share of the largest finite magnitude, and by an absolute error; integers by none."""
    tolerance = Tolerance(0.01, 0.5)
    expected = np.array([100.0, -200.0, INF], np.float32)
    assert largest_error(expected, expected + np.float32(2.4), tolerance).beyond == 0
    assert largest_error(expected, expected + np.float32(2.6), tolerance).beyond == 2
    assert largest_error(np.array([100]), np.array([101]), tolerance).beyond == 1


def test_texts() -> None:
    """Both values, the error, the tolerance and what it is a share of, how many are beyond it."""
    assert told([1.0, 4.0], [1.5, 3.0], Tolerance(0.1, 0.0)) == (
        "expected 4.0, got 3.0: the largest error, 1; "
        "0.4 is allowed (tolerance 0.1 of the largest magnitude, 4); 2 of 2 elements are off by more"
    )
    assert "0.5 is allowed (tolerance 0.1 of the largest magnitude, 4 + 0.1)" in told(
        [1.0, 4.0], [1.5, 3.0], Tolerance(0.1, 0.1)
    )
    assert told([3, 4], [3, 7]) == (
        "expected 4, got 7: the largest error, 3; they must be equal; 1 of 2 elements differ"
    )
    assert told([True], [False]) == (
        "expected True, got False; they must be equal; 1 of 1 elements differ"
    )
