"""The generator of random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw: Parallel random
numbers, as easy as 1, 2, 3; SC 2011).

In: arrays, Python integers or lanes of 64 bits, below 2^64 and not negative. Out: the same. Not
done here: what becomes of the bits (``frontend/random_numbers``).

A counter stands for its place in the stream of its key: no number depends on another one, so that
every device and every number of threads gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LOW = 0xFFFFFFFF


def philox(counter: Any, key: Any, shift_right: Callable[[Any, int], Any]) -> Any:
    """The first two words, the first in the low bits, of the four that belong to the counter words
    (counter, counter >> 32, 0, 0) and the key words (key, key >> 32).

    ``shift_right(x, count)``: zeros come in.
    """
    c0, c1 = counter & LOW, shift_right(counter, 32)
    k0, k1 = key & LOW, shift_right(key, 32)
    c2 = c3 = counter & 0
    for _ in range(ROUNDS):
        first, second = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            shift_right(second, 32) ^ c1 ^ k0, second & LOW, shift_right(first, 32) ^ c3 ^ k1,
            first & LOW,
        )  # fmt: skip
        k0, k1 = k0 + WEYL[0] & LOW, k1 + WEYL[1] & LOW
    return c0 | c1 * (1 << 32)
