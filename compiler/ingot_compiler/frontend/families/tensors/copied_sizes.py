"""Sizes of a Reshape that are 0 only in some calls: there, the size of the operand's axis.

In: the operand's sizes, the wanted ones, none of them a 0 that the model writes down. Out: the
sizes. Not done here: -1, a 0 that is written down, shapes that are data.

A condition in a size hides what it is equal to, so it is left out where it would change nothing or
only how an empty result is shaped: where the copied size is 0, too, or where the axis is made of
others than the one that would be copied (s of [b*s, 768] as [b, s, -1]), or of that one and others
(b*s of [b, s, 768] as [b*s, 12, -1]), and where it is itself a quotient of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from ingot_compiler.ir.dims import (
    Atom,
    Call,
    Dim,
    Symbol,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    from_terms,
    substitute,
    terms_of,
)
from ingot_compiler.ir.sizes.ranges import at_most, is_nonnegative

_WAYS_MAX = 16  # to be 0


def copied_where_zero(own: Sequence[Dim], wanted: Sequence[Dim]) -> tuple[Dim, ...]:
    """``wanted`` as it is read; -1 stays."""
    return tuple(
        size + dim_mul(1 - dim_min(size, 1), own[axis])
        if axis < len(own) and _is_copied(own, wanted, axis)
        else size
        for axis, size in enumerate(wanted)
    )


def _is_copied(own: Sequence[Dim], wanted: Sequence[Dim], axis: int) -> bool:
    """Whether the size may be 0 and the one to copy not, in a call that is valid then."""
    size, copied = wanted[axis], own[axis]
    if size in (-1, copied) or at_most(1, size) or _is_quotient_of_sizes(size):
        return False
    ways = [zeros for zeros in _ways_to_be_zero(size) if _without(copied, zeros) != 0]
    are_empty = [any(_without(each, zeros) == 0 for each in own) for zeros in ways]
    is_empty = any(dim_mod(each, size) == 0 for each in own)  # in all calls where the size is 0
    if not is_empty and not all(are_empty):
        return True
    is_part = not isinstance(copied, int) and dim_mod(size, copied) == 0
    may_be_empty = (is_empty and bool(ways)) or any(are_empty)
    return may_be_empty and -1 in wanted and not is_part and _is_made_of(own, wanted, axis)


def _is_quotient_of_sizes(size: Dim) -> bool:
    """Whether a size was found by dividing by others, as the elements of a tensor by its other axes:
    where it is 0, there are none."""
    return any(
        atom.function == "floordiv" and not isinstance(atom.right, int)
        for term, _ in terms_of(size)
        for atom in term
        if isinstance(atom, Call)
    )


def _ways_to_be_zero(size: Dim) -> Iterator[tuple[Atom, ...]]:
    """What is 0 where ``size`` is: one factor of each of its terms; nothing is known of terms that
    cancel."""
    terms = [monomial for monomial, _ in terms_of(size)]
    if any(factor < 0 for _, factor in terms_of(size)) or not is_nonnegative(size):
        return iter([()])
    return islice(product(*terms), _WAYS_MAX)


def _without(size: Dim, zeros: Sequence[Atom]) -> Dim:
    """What is left of a size."""
    names = {atom.name: 0 for atom in zeros if isinstance(atom, Symbol)}
    calls = [atom for atom in zeros if not isinstance(atom, Symbol)]
    kept = {term: factor for term, factor in terms_of(size) if not any(c in term for c in calls)}
    return substitute(from_terms(kept), names)


def _is_made_of(own: Sequence[Dim], wanted: Sequence[Dim], axis: int) -> bool:
    """Whether axis ``axis`` of the result is made of a run of axes of which that one of the operand
    is: runs end where the products before or behind are equal."""
    ends = [
        (left, right)
        for left in range(len(own) + 1)
        for right in range(len(wanted) + 1)
        if _are_equal(own[:left], wanted[:right]) or _are_equal(own[left:], wanted[right:])
    ]
    begin = max(right for _, right in ends if right <= axis)
    end = min(right for _, right in ends if right > axis)
    first = min(left for left, right in ends if right == begin)
    last = max(left for left, right in ends if right == end)
    return first <= axis < last


def _are_equal(left: Sequence[Dim], right: Sequence[Dim]) -> bool:
    return -1 not in right and dim_product(tuple(left)) == dim_product(tuple(right))
