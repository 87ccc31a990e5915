"""What is known of an index in loops: the least and the greatest value that it can have.

In: an index, the extents of loop variables. Out: bounds, whether it stays inside an axis. Not done
here: what is seen of sizes alone (``ir.ranges``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.ir.dims import Dim, coefficient, substitute
from ingot_compiler.ir.ranges import at_most

Extents = Mapping[str, Dim]
"""Loop variables, each of which counts from 0 to below its extent, at least once."""


def index_range(index: Dim, extents: Extents) -> tuple[Dim, Dim] | None:
    """The least and the greatest value; None where the index does not grow or fall evenly."""
    low = high = index
    for name, extent in extents.items():
        factor = coefficient(index, name)
        if factor not in (1, -1, 0):
            return None
        first, last = {name: 0}, {name: extent - 1}
        low = substitute(low, last if factor == -1 else first)
        high = substitute(high, first if factor == -1 else last)
    return low, high


def stays_within(index: Dim, first: Dim, end: Dim, extents: Extents) -> bool:
    """Whether ``first <= index < end`` can be seen."""
    found = index_range(index, extents)
    return found is not None and at_most(first, found[0]) and at_most(found[1] + 1, end)
