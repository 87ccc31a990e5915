"""``row_pitch``: whether the rows of a register tile lie evenly apart in an image."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mod, dim_mul, evaluate, symbol
from ingot_compiler.kernels.row_pitch import row_pitch

ROW, N = symbol("row"), symbol("n")


def _pixels(width: Dim, height: Dim) -> Dim:
    """Strides as of an image with borders, every second pixel."""
    across = dim_mod(dim_floordiv(ROW, width), height)
    image = dim_floordiv(ROW, dim_mul(width, height))
    return 7 + 6 * dim_mod(ROW, width) + 1356 * across + 153228 * image + N


@pytest.mark.parametrize("height", [1, 2, 7, 14])
def test_pixels_of_one_row(height: int) -> None:
    """Where tiles divide rows of the image, every pixel of one is as far from the one before."""
    index = _pixels(28, 5)
    assert row_pitch(index, "row", height) == 6
    for first in range(0, 28 * 5 * 2, height):
        places = [evaluate(index, {"row": first + at, "n": 0}) for at in range(height)]
        assert {after - before for before, after in pairwise(places)} <= {6}


@pytest.mark.parametrize(
    "index",
    [
        _pixels(30, 14), _pixels(N, 14), dim_mod(ROW + 1, 28), dim_mul(ROW, N), ROW * ROW,
        dim_min(ROW, 28), dim_mul(dim_mod(ROW, 28), dim_floordiv(ROW, 28)),
    ],
)  # fmt: skip
def test_rows_that_lie_otherwise(index: Dim) -> None:
    """Rows of no whole tiles, sizes that calls decide, and what is no pixel."""
    assert row_pitch(index, "row", 14) is None


def test_rows_of_a_matrix() -> None:
    """The factor, whatever does not move with the row."""
    assert row_pitch(5 * ROW + dim_mod(N, 3) - 2, "row", 14) == 5
    assert row_pitch(N, "row", 14) == 0
