"""Conditions on indices as values, and the proof that an index cannot leave its axis.

In: indices and extents. Out: a bool value, an index. Not done here: what is read or written under
the condition (``kinds``, ``ops``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.ir.dims import Dim, dim_max, dim_min
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, Value


def is_within(first: Dim, index: Dim, end: Dim) -> Value:
    """``first <= index < end``."""
    ends = Compare("less_equal", first, index), Compare("less", index, end)
    return Apply("logical_and", ends, "bool")


def all_of(conditions: Iterable[Value]) -> Value:
    """Whether all hold; true without any."""
    found: Value = Constant(True, "bool")
    for condition in conditions:
        found = Apply("logical_and", (found, condition), "bool")
    return found


def clamped(index: Dim, extent: Dim) -> Dim:
    """The nearest index in ``[0, extent)``."""
    return dim_max(dim_min(index, extent - 1), 0)
