"""Sums of products of bf16, rounded as ``vdpbf16ps`` and ``tdpbf16ps`` round them.

In: Python numbers. Out: Python numbers. Not done here: loops (``interpret_blocks``).

Of a pair, the second product is added first, then the first one, each by a multiply-add that rounds
once, to nearest even. A tile has a chain for all first factors, one for all second ones; their sum
is added to the total. Denormal factors and sums count as 0, whatever the processor's control
register says. So says Intel's manual; pairs were tried on a Zen 4, with eight million random and edge
cases, tiles nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ingot_compiler.lowering.interpret_scalars import round_f32

PART_PRODUCTS: Mapping[int, tuple[tuple[int, int], ...]] = {
    1: ((0, 0),),
    2: ((0, 1), (0, 0), (1, 0)),
    3: ((0, 2), (0, 1), (1, 1), (1, 0), (0, 0), (2, 0)),
}
"""Number of parts of a factor -> which parts of A and of B are multiplied, in order: all but those
that are smaller than what rounding loses. From one to the next, one tile is another."""
TILE_DEPTH = 32
"""Summands of a product of two tiles."""
_LEAST_NORMAL = 2.0**-126


def add_bf16_pair(total: float, left: Sequence[float], right: Sequence[float]) -> float:
    """``total + left[1] * right[1] + left[0] * right[0]``, from left to right.

    The products are exact in f64, and so many bits wider than f32 that rounding twice gives what
    rounding once does.
    """
    for at in (1, 0):
        total = _multiply_add(total, left[at], right[at])
    return total


def add_bf16_tile(total: float, left: Sequence[float], right: Sequence[float]) -> float:
    """``total`` and the products of a row and a column of tiles."""
    chains = [0.0, 0.0]
    for at, (a, b) in enumerate(zip(left, right, strict=True)):
        chains[at % 2] = _multiply_add(chains[at % 2], a, b)
    return _rounded(total + _rounded(chains[0] + chains[1]))


def _multiply_add(total: float, a: float, b: float) -> float:
    return _rounded(total + _without_denormals(a) * _without_denormals(b))


def _rounded(number: float) -> float:
    return _without_denormals(round_f32(number))


def _without_denormals(number: float) -> float:
    return math.copysign(0.0, number) if abs(number) < _LEAST_NORMAL else number
