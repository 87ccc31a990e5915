"""What sizes are never above: those of a call, and those that only the data decide."""

from __future__ import annotations

import pytest

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, symbol
from ingot_compiler.ir.sizes.ranges import least_above_zero, upper_bound
from ingot_compiler.lowering.groups.fused import SymbolRead, SymbolSet
from ingot_compiler.lowering.groups.size_bounds import most_of, size_bounds

_N, _M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("dim", "most"),
    [
        (7, 7),
        (_N, None),
        (dim_min(_N, 100), 100),
        (3 * dim_min(_N, 100) + 2, 302),
        (dim_min(dim_min(_N, 9), _M), 9),
        (dim_min(_N - 5, 100), None),
        (dim_min(_N, 100) * _M, None),
        (10 - dim_min(_N, 4), None),
    ],
)
def test_of_any_call(dim: Dim, most: int | None) -> None:
    """A minimum of what is not below 0 has the bound of either side; nothing else has one."""
    assert upper_bound(dim) == most


@pytest.mark.parametrize(
    ("dim", "least"),
    [
        (7, 7),
        (0, 1),
        (_N, 1),
        (196 * _N, 196),
        (49 * _N * _M, 49),
        (6 * _N + 4 * _M, 4),
        (6 * _N + 9, 9),
        (196 * _N - 1, 1),
    ],
)
def test_what_a_size_is_not_below_unless_it_is_0(dim: Dim, least: int) -> None:
    """Of a sum the least factor, or what is always there."""
    assert least_above_zero(dim) == least


def test_of_what_the_data_decide() -> None:
    """A size that one step alone reads has its bound; sizes that rise with it have theirs."""
    reads = [SymbolRead(name, 0, 0, "i64", most=most) for name, most in (("n", 5), ("m", 7), ("k", 9))]  # fmt: skip
    again, open_ = SymbolSet(("k",), (1,)), SymbolRead("o", 0, 0, "i64")
    bounds = size_bounds((*reads, again, open_))
    assert bounds == {"n": 5, "m": 7}
    for dim, most in (
        (2 * _N * _M + 1, 71),
        (symbol("o"), None),
        (9 - _N, None),
        (dim_floordiv(_N, 2), None),
    ):
        assert most_of(dim, bounds) == most
