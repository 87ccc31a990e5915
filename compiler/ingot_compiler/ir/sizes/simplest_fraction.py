"""The fraction that a float was written for: 0.7 in f32 is 11744051 / 2^24, and means 7 / 10.

In: a float, the bits of its mantissa. Out: a fraction. Not done here: what is scaled by it.
"""

from __future__ import annotations

from fractions import Fraction

F32_BITS, F64_BITS = 24, 53


def simplest_fraction(value: float, bits: int) -> Fraction:
    """The fraction of the least denominator whose distance from a positive float is at most 2^-bits
    of it, as rounding makes."""
    exact = Fraction(value)
    share = Fraction(1, 1 << bits)
    return _simplest_between(exact * (1 - share), exact * (1 + share))


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """By the continued fraction, as long as both bounds have the same whole part."""
    before, last, below, under = 1, 0, 0, 1  # numerators and denominators of the two latest
    while True:
        whole = -(-low.numerator // low.denominator)
        if whole <= high:
            return Fraction(before * whole + last, below * whole + under)
        whole -= 1
        before, last, below, under = before * whole + last, before, below * whole + under, below
        low, high = 1 / (high - whole), 1 / (low - whole)
