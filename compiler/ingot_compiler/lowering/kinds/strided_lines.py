"""A loop of each unit over every 64th line, so that workspace is for a few lines and stays near.

In: how many lines there are. Out: units, the line of a step, the loop over steps. Not done here: what
happens along a line (``rank_rows``, ``select_candidates``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mul, symbol
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.kinds.program import INDEX
from ingot_compiler.lowering.loops.program import For, Statement

_UNITS_MAX = 64  # enough to split evenly over threads
LINE: Dim = symbol(INDEX) + dim_mul(_UNITS_MAX, symbol("turn"))
"""The line of a step of the loop."""


def unit_count(lines: Dim) -> Dim:
    """How many units, and places in workspace, there are."""
    return dim_min(lines, _UNITS_MAX)


def work_of_unit(lines: Dim, work: Dim) -> Dim:
    """The work of a unit: that of all of its lines."""
    return dim_mul(work, ceil_div(lines, _UNITS_MAX))


def strided_loop(lines: Dim, body: tuple[Statement, ...]) -> For:
    """The loop of a unit over its lines, ``_UNITS_MAX`` apart."""
    count = dim_floordiv(lines - symbol(INDEX) + (_UNITS_MAX - 1), _UNITS_MAX)
    return For("turn", count, "serial", body)
