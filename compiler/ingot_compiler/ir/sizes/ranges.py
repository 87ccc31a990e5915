"""What can be seen of the values of a size expression: a number that it never goes below, the order
of two of them.

In: size expressions. Out: bounds and answers, None or false where nothing can be seen. Not done
here: the canonical form (``dims``), checks at run time of what cannot be seen here.

A symbol stands for an integer >= 0, unless ``signed`` says that it may be negative (an index that
code generation binds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import prod

from ingot_compiler.ir.dims import (
    Atom,
    Call,
    Dim,
    Sum,
    dim_add,
    dim_max,
    dim_min,
    dim_mul,
    from_terms,
    terms_of,
)

# Sizes of pools in a row have two or three quotients inside one another.
_QUOTIENTS_MAX, _QUOTIENT_TERMS_MAX = 4, 12

Signed = Callable[[str], bool]
"""Whether the symbol of a name may be negative."""


def _sizes_only(_: str) -> bool:
    return False


def lower_bound(dim: Dim, signed: Signed = _sizes_only) -> int | None:
    """A number that ``dim`` never goes below; None when none can be seen."""
    bound = _bound_of_terms(dim, signed)
    if bound is None and signed is _sizes_only:
        bound = _bound_by_quotients(dim, _QUOTIENTS_MAX)
    return bound


def least_above_zero(dim: Dim) -> int:
    """A number that a size is not below where it is not 0: 196 of ``196*n``; 1 where no more can be
    seen."""
    terms = terms_of(dim)
    if not terms or _bound_of_terms(dim, _sizes_only) is None:
        return 1
    fixed = sum(factor for monomial, factor in terms if not monomial)
    return max(1, fixed or min(factor for _, factor in terms))


def _bound_of_terms(dim: Dim, signed: Signed) -> int | None:
    """What each term alone tells."""
    bound = 0
    for monomial, factor in terms_of(dim):
        if not monomial:
            bound += factor
        elif factor < 0 or not all(_is_nonnegative_atom(atom, signed) for atom in monomial):
            return None
    return bound


@lru_cache(maxsize=1 << 12)
def _bound_by_quotients(dim: Dim, most: int) -> int | None:
    """What is left when quotients give way to what they are not below: the sizes of windows that
    are rounded up are compared so. At most ``most`` give way, one after the other."""
    if not most or not isinstance(dim, Sum) or len(dim.terms) > _QUOTIENT_TERMS_MAX:
        return None
    bounds: list[int] = []
    for lesser in _lesser_forms(dim):
        bound = _bound_of_terms(lesser, _sizes_only)
        if bound is None:
            bound = _bound_by_quotients(lesser, most - 1)
        bounds += () if bound is None else (bound,)
    return max(bounds, default=None)


def _lesser_forms(dim: Sum) -> Iterator[Dim]:
    """Expressions that ``dim`` is not below, each with a quotient less."""
    quotients = [
        (factor, monomial[0], monomial[0].right)
        for monomial, factor in dim.terms
        if len(monomial) == 1
        and isinstance(monomial[0], Call)
        and monomial[0].function == "floordiv"
        and isinstance(monomial[0].right, int)
        and monomial[0].right > 0
    ]
    for factor, call, divisor in quotients:
        if factor % divisor == 0:  # x - divisor + 1 <= divisor * floordiv(x, divisor) <= x
            whole = dim_add(call.left, 1 - divisor) if factor > 0 else call.left
            yield _instead(dim, ((factor, call),), dim_mul(whole, factor // divisor))
    for factor, call, divisor in quotients:
        for other_factor, other, other_divisor in quotients:
            if factor > 0 and other_factor == -factor and divisor == other_divisor:
                # floordiv(x, d) - floordiv(y, d) is not below floordiv(x - y, d).
                bound = lower_bound(_difference(call.left, other.left))
                if bound is not None:
                    both = ((factor, call), (other_factor, other))
                    yield _instead(dim, both, factor * (bound // divisor))


def _instead(dim: Sum, terms: Iterable[tuple[int, Call]], other: Dim) -> Dim:
    """``dim`` with another expression for some of its terms."""
    gone = {((call,), factor) for factor, call in terms}
    return dim_add(from_terms(dict(term for term in dim.terms if term not in gone)), other)


def upper_bound(dim: Dim) -> int | None:
    """A number that a size never goes above; None when none can be seen."""
    bound = 0
    for monomial, factor in terms_of(dim):
        most = [_most_of_atom(atom) for atom in monomial]
        known = [number for number in most if number is not None]
        if monomial and (factor < 0 or len(known) < len(most)):
            return None
        bound += factor * prod(known)
    return bound


def _most_of_atom(atom: Atom) -> int | None:
    """The less of two numbers is above neither, and here below 0 neither."""
    if not isinstance(atom, Call) or atom.function != "min":
        return None
    if not (is_nonnegative(atom.left) and is_nonnegative(atom.right)):
        return None
    sides = [upper_bound(side) for side in (atom.left, atom.right)]
    return min((side for side in sides if side is not None and side >= 0), default=None)


def is_nonnegative(dim: Dim, signed: Signed = _sizes_only) -> bool:
    """Whether ``dim >= 0`` can be seen."""
    bound = lower_bound(dim, signed)
    return bound is not None and bound >= 0


def _is_nonnegative_atom(atom: Atom, signed: Signed) -> bool:
    if not isinstance(atom, Call):
        return not signed(atom.name)
    right = is_nonnegative(atom.right, signed)
    if atom.function == "mod":
        return right  # the sign of the divisor, 0 for a divisor of 0
    left = is_nonnegative(atom.left, signed)
    return left or right if atom.function == "max" else left and right


def at_most(dim: Dim, most: Dim) -> bool:
    """Whether ``dim <= most`` can be seen."""
    return is_nonnegative(_difference(most, dim))


def less(left: Dim, right: Dim) -> bool | None:
    """Whether ``left < right``; None when it cannot be seen."""
    return True if at_most(dim_add(left, 1), right) else False if at_most(right, left) else None


def equal(left: Dim, right: Dim) -> bool | None:
    """Whether two sizes are equal; None when it cannot be seen."""
    if left == right:
        return True
    return False if less(left, right) or less(right, left) else None


def sign(dim: Dim) -> int:
    """1 when ``dim >= 0`` can be seen, -1 when ``dim < 0`` can, else 0."""
    return 1 if at_most(0, dim) else -1 if at_most(dim, -1) else 0


def maximum(left: Dim, right: Dim) -> Dim:
    """max(left, right), one of them where their order can be seen."""
    if at_most(left, right):
        return right
    return left if at_most(right, left) else dim_max(left, right)


def minimum(left: Dim, right: Dim) -> Dim:
    """min(left, right), one of them where their order can be seen."""
    if at_most(left, right):
        return left
    return right if at_most(right, left) else dim_min(left, right)


def _difference(left: Dim, right: Dim) -> Dim:
    return dim_add(left, dim_mul(right, -1))
