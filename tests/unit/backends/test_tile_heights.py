"""Heights of the register tiles of convolutions: rows of an image that they divide."""

from __future__ import annotations

import pytest

from ingot_compiler.kernels.tiles import choose_tile
from ingot_compiler.targets.target import parse_target

WIDE = parse_target("x86-64-v4")


@pytest.mark.parametrize("columns", [4, 8, 24, 40])
@pytest.mark.parametrize("run", [33, 40, 56, 150])
@pytest.mark.parametrize("depth", [27, 800, 4608])
def test_half_vectors_are_used(columns: int, run: int, depth: int) -> None:
    """Rows with an address each have none."""
    assert run % choose_tile(run * run, columns, WIDE, run=run, depth=depth).rows == 0


@pytest.mark.parametrize("run", [32, 40, 150])
def test_short_sums_have_one_address(run: int) -> None:
    """Computing one for each row takes as long as the products."""
    assert run % choose_tile(run * run, 32, WIDE, run=run, depth=27).rows == 0


def test_long_sums_have_tall_tiles() -> None:
    """Where addresses count for little, and no half vector is lost."""
    tile = choose_tile(33 * 33, 32, WIDE, run=33, depth=4608)
    assert tile == choose_tile(33 * 33, 32, WIDE)
