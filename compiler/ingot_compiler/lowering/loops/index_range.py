"""The least and the greatest value that an index in loops can have, as far as they are known.

In: an index, the extents of loop variables. Out: bounds, whether it stays inside an axis. Not done
here: what is seen of sizes alone (``ir.sizes.ranges``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.ir.dims import Call, Dim, dim_min, substitute, symbols_of_product, terms_of
from ingot_compiler.ir.sizes.ranges import at_most
from ingot_compiler.ir.sizes.symbol_terms import coefficient

Extents = Mapping[str, Dim]
"""Loop variables, each of which counts from 0 to below its extent, at least once."""


def index_range(index: Dim, extents: Extents) -> tuple[Dim, Dim] | None:
    """The least and the greatest value; None where the index does not grow or fall evenly."""
    low = high = index
    for name, extent in extents.items():
        factor = _slope(index, name)
        if factor not in (1, -1, 0):
            return None
        first, last = {name: 0}, {name: extent - 1}
        low = substitute(low, last if factor == -1 else first)
        high = substitute(high, first if factor == -1 else last)
    return low, high


def _slope(index: Dim, name: str) -> Dim | None:
    """The coefficient of a variable, or of whole parts of it, which grow as it does."""
    factor = coefficient(index, name)
    if factor is not None:
        return factor
    naming = [term for term in terms_of(index) if name in symbols_of_product(term[0])]
    if len(naming) != 1 or len(naming[0][0]) != 1:
        return None
    (((atom,), scale),) = naming
    if not isinstance(atom, Call) or atom.function != "floordiv":
        return None
    is_part = isinstance(atom.right, int) and atom.right > 0
    return scale if is_part and coefficient(atom.left, name) == 1 else None


def stays_within(index: Dim, first: Dim, end: Dim, extents: Extents) -> bool:
    """Whether ``first <= index < end`` can be seen."""
    found = index_range(index, extents)
    return found is not None and _at_most(first, found[0]) and _at_most(found[1] + 1, end)


def _at_most(dim: Dim, most: Dim) -> bool:
    """Whether ``dim <= most`` can be seen, also where the less of two sizes is taken from
    ``most``: it is above neither."""
    slack = most - dim
    slacks = [slack]
    for monomial, factor in terms_of(slack):
        atom = monomial[0] if factor == -1 and len(monomial) == 1 else None
        if isinstance(atom, Call) and atom.function == "min":
            less = dim_min(atom.left, atom.right)
            slacks += [slack + less - atom.left, slack + less - atom.right]
    return any(at_most(0, each) for each in slacks)
