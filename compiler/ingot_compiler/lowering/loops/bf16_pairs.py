"""Sums of products of bf16, rounded as ``vdpbf16ps``, ``tdpbf16ps`` and ``bfdot`` round them.

In: Python numbers. Out: Python numbers. Not done here: loops (``interpret_blocks``).

Of a pair, the second product is added first, then the first one, each by a multiply-add that rounds
once, to nearest even. A tile has a chain for all first factors, one for all second ones; their sum
is added to the total. Denormal factors and sums count as 0, whatever the processor's control
register says. So says Intel's manual; pairs were tried on a Zen 4, with eight million random and edge
cases, tiles nowhere.

``bfdot`` adds the two products to each other, then to the total, and rounds each of the three to odd:
what is not exact is cut off, and its last bit set; what is too large becomes infinity. Denormals count
as 0. So says Arm's manual of processors whose ``FPCR.EBF`` is 0, as Linux leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ingot_compiler.lowering.loops.interpret_scalars import round_f32

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
_INFINITE_FROM, _F32_BITS = 2.0**128, 24


def add_bf16_pair(total: float, left: Sequence[float], right: Sequence[float]) -> float:
    """``total + left[1] * right[1] + left[0] * right[0]``, from left to right.

    The products are exact in f64, and so many bits wider than f32 that rounding twice gives what
    rounding once does.
    """
    for at in (1, 0):
        total = _multiply_add(total, left[at], right[at])
    return total


def add_bf16_pair_to_odd(total: float, left: Sequence[float], right: Sequence[float]) -> float:
    """``total + (left[0] * right[0] + left[1] * right[1])``, each rounded to odd."""
    first, second = (
        _to_odd(_without_denormals(a) * _without_denormals(b), 0.0)
        for a, b in zip(left, right, strict=True)
    )
    return _sum_to_odd(total, _sum_to_odd(first, second))


def _sum_to_odd(a: float, b: float) -> float:
    """The sum in f64, and what it lacks, rounded once."""
    total = a + b
    if not math.isfinite(total):
        return total
    other = total - a
    return _to_odd(total, (a - (total - other)) + (b - other))


def _to_odd(number: float, rest: float) -> float:
    """``number + rest`` in f32, rounded to odd; ``rest`` is below the last place of ``number``."""
    if not math.isfinite(number) or number == 0:
        return number
    sign, number, rest = math.copysign(1.0, number), abs(number), math.copysign(1.0, number) * rest
    if number < _LEAST_NORMAL or (number == _LEAST_NORMAL and rest < 0):
        return sign * 0.0
    if number > _INFINITE_FROM or (number == _INFINITE_FROM and rest >= 0):
        return sign * math.inf
    step = 2.0 ** (math.frexp(number)[1] - _F32_BITS)
    if rest < 0 and math.frexp(number)[0] == 0.5:  # the exact sum has a smaller exponent
        step /= 2
    count = math.floor(number / step)
    if count * step == number and rest < 0:
        count -= 1
    is_exact = count * step == number and rest == 0
    return sign * step * (count if is_exact else count | 1)


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
