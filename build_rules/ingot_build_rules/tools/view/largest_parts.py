"""What a size is the largest of, without the parts that another part always covers.

In: a size expression. Out: expressions whose largest value it is. Not done here: making the
expression (``workspace_formula``), text.

The workspace of a call is the largest of many sums of rounded sizes, one inside the other. Sums,
products and roundings upwards grow with their operands, so each ``max`` moves outwards; most of what it
chooses from is never the largest, whatever the sizes of the call are, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product

from ingot_compiler.ir.dims import (
    Atom,
    Call,
    Dim,
    Monomial,
    dim_floordiv,
    dim_mul,
    dim_product,
    from_terms,
    terms_of,
)
from ingot_compiler.ir.sizes.ranges import is_nonnegative

_PARTS_MAX = 64
_BOUNDS_MAX = 64  # of one difference; more are not worth the time


def largest_parts(dim: Dim) -> tuple[Dim, ...]:
    """Return expressions of which the largest is ``dim``, for all sizes; just ``dim`` where they
    would be too many."""
    kept: tuple[Dim, ...] = (0,)
    for monomial, factor in terms_of(dim):
        parts = _parts_of_term(monomial, factor)
        if len(kept) * len(parts) > _PARTS_MAX:
            return (dim,)
        kept = _uncovered([left + right for left, right in product(kept, parts)])
    return kept


def _parts_of_term(monomial: Monomial, factor: int) -> Sequence[Dim]:
    if factor < 0 or not is_nonnegative(from_terms({monomial: 1})):
        return [from_terms({monomial: factor})]
    parts = [_parts_of_atom(atom) for atom in monomial]
    return [dim_mul(dim_product(chosen), factor) for chosen in product(*parts)]


def _parts_of_atom(atom: Atom) -> tuple[Dim, ...]:
    if isinstance(atom, Call) and atom.function == "max":
        return _uncovered([*largest_parts(atom.left), *largest_parts(atom.right)])
    if isinstance(atom, Call) and atom.function == "floordiv" and isinstance(atom.right, int):
        parts = largest_parts(atom.left)
        return tuple(dim_floordiv(part, atom.right) for part in parts)
    return (from_terms({(atom,): 1}),)


def _uncovered(parts: Sequence[Dim]) -> tuple[Dim, ...]:
    """Leave out each part that another one covers, and repetitions."""
    kept: list[Dim] = []
    for part in parts:
        if not any(_covers(other, part) for other in kept):
            kept = [*(other for other in kept if not _covers(part, other)), part]
    return tuple(kept)


@lru_cache(maxsize=1 << 14)
def _covers(most: Dim, dim: Dim) -> bool:
    """Whether ``dim <= most`` can be seen, for all sizes."""
    return any(map(is_nonnegative, islice(_bounds(most - dim), _BOUNDS_MAX)))


def _bounds(dim: Dim) -> Iterator[Dim]:
    """Expressions that ``dim`` never goes below, simpler and simpler; the first is ``dim``."""
    yield dim
    for monomial, factor in terms_of(dim):
        for index, atom in enumerate(monomial):
            if isinstance(atom, Call):
                rest = from_terms({monomial[:index] + monomial[index + 1 :]: 1})
                if not is_nonnegative(from_terms({monomial: 1})):
                    return
                others = dim - from_terms({monomial: factor})
                for bound in _bounds_of_call(atom, factor):
                    yield from _bounds(others + dim_mul(bound, rest))
                return


def _bounds_of_call(call: Call, factor: int) -> Iterator[Dim]:
    """Expressions that ``factor * call`` never goes below; the call is not negative."""
    left, right = call.left, call.right
    if call.function == "floordiv" and isinstance(right, int) and right > 0:
        up = left - (right - 1)  # of which the call is the quotient rounded up
        if factor % right == 0:
            yield dim_mul(up if factor > 0 else left, factor // right)
        if factor < 0:
            yield dim_mul(up if is_nonnegative(up) else left, factor)
    elif call.function == ("max" if factor > 0 else "min"):
        yield dim_mul(left, factor)
        yield dim_mul(right, factor)
    if factor > 0:
        yield 0
