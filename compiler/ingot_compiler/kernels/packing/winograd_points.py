"""The points at which Winograd's algorithm evaluates the polynomials that pixels and taps are, for
kernels of three taps.

In: how many results a tile has along an axis. Out: ``Points``. Not done here: the transforms of
images (``winograd.winograd_transforms``) and of weights (``winograd_weights``).

Frequencies are in this order: zero, if it is a point; each pair, the positive point first;
infinity. Pairs of opposite points share most of their operations. The numbers are sums of few
powers of two, so that all factors of pixels and products are exact, and of those the ones with the least
error of results: with 5/8 and 3/2 it is 0.8 of that with 1, -1, 1/2 and -2 (decision 33).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Points:
    """``pairs``: positive numbers, each of which stands for itself and its opposite."""

    has_zero: bool
    pairs: tuple[Fraction, ...]

    @property
    def finite(self) -> tuple[Fraction, ...]:
        """All points but infinity, in the order of frequencies."""
        signed = tuple(point for pair in self.pairs for point in (pair, -pair))
        return (Fraction(0), *signed) if self.has_zero else signed


_POINTS: Mapping[int, Points] = {
    2: Points(has_zero=True, pairs=(Fraction(1),)),
    3: Points(has_zero=False, pairs=(Fraction(3, 8), Fraction(5, 4))),
    4: Points(has_zero=True, pairs=(Fraction(5, 8), Fraction(3, 2))),
}


def points_of_frequencies(count: int) -> Points:
    """The points of an axis with so many frequencies, of which there are two more than results."""
    return _POINTS[count - 2]
