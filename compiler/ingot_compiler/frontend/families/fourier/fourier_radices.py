"""Into which factors the length of a Fourier transform is split.

In: a length. Out: its radices. Not done here: the transforms.

A stage of radix r takes time that grows like r, for its matrix products, and some time that does
not, for moving what it gives.
"""

from __future__ import annotations

from functools import lru_cache

RADIX_MAX = 128  # of several; a length without such factors is one radix
_STAGE_COST = 48  # what moving costs, in rows of a matrix


@lru_cache(1 << 10)
def radices(length: int) -> tuple[int, ...]:
    """Factors of ``length``, descending: those that take the least time; itself when it has a prime
    factor above 128."""
    found = _within(max(length, 1), RADIX_MAX)
    return min(found, (length,), key=_cost) if found else (length,)


def _cost(factors: tuple[int, ...]) -> int:
    return sum(factors) + _STAGE_COST * len(factors)


@lru_cache(1 << 14)
def _within(length: int, largest: int) -> tuple[int, ...]:
    """Factors of at most ``largest``, descending; none where there are none."""
    if length <= largest:
        options: list[tuple[int, ...]] = [(length,)]
    else:
        options = []
    for factor in range(min(largest, length // 2), 1, -1):
        if length % factor == 0 and (rest := _within(length // factor, factor)):
            options.append((factor, *rest))
    return min(options, key=_cost, default=())
