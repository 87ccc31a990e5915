"""Sums of products divided by one another, as polynomials are.

In: products as sorted tuples of factors, with a number each. Out: quotients. Not done here: what a
factor is (``dims``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

Factor = TypeVar("Factor")
Terms = dict[tuple[Factor, ...], int]

_TERMS_MAX = 64  # of a quotient


def without(product: tuple[Factor, ...], divisor: tuple[Factor, ...]) -> tuple[Factor, ...] | None:
    """What is left of a product without the factors of ``divisor``; None unless it has them."""
    left_over = list(product)
    for factor in divisor:
        if factor not in left_over:
            return None
        left_over.remove(factor)
    return tuple(left_over)


def divided(
    dividend: Iterable[tuple[tuple[Factor, ...], int]], product: tuple[Factor, ...], number: int
) -> tuple[Terms[Factor], Terms[Factor]]:
    """Quotient and rest of a sum by ``number * product``, which divides a term or leaves it."""
    quotient: Terms[Factor] = {}
    rest: Terms[Factor] = {}
    for term, factor in dividend:
        left_over = without(term, product)
        if left_over is None or factor % number:
            rest[term] = factor
        else:
            quotient[left_over] = quotient.get(left_over, 0) + factor // number
    return quotient, rest


def whole_quotient(
    dividend: Mapping[tuple[Factor, ...], int],
    divisor: Sequence[tuple[tuple[Factor, ...], int]],
    order: Callable[[Factor], str],
) -> dict[tuple[Factor, ...], int] | None:
    """What ``divisor`` times gives ``dividend``; None where something is left. ``order``: of the
    factors of a product; the terms of ``divisor`` are sorted by degree, the highest first, and by
    their factors."""

    def rank(product: tuple[Factor, ...]) -> tuple[int, tuple[str, ...]]:
        return -len(product), tuple(map(order, product))

    left, quotient = dict(dividend), dict[tuple[Factor, ...], int]()
    while left and len(quotient) < _TERMS_MAX:
        first = min(left, key=rank)
        rest = without(first, divisor[0][0])
        if rest is None or left[first] % divisor[0][1]:
            return None
        quotient[rest] = times = left[first] // divisor[0][1]
        for product, own in divisor:
            both = tuple(sorted(product + rest, key=order))
            left[both] = left.get(both, 0) - times * own
            if not left[both]:
                del left[both]
    return None if left else quotient
