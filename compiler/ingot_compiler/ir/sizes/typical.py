"""Sizes that decisions of cost assume where they are open.

In: an expression over sizes. Out: ``typical``. Not done here: decisions.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, substitute, symbols_of

TYPICAL_SYMBOL = 64


def typical(dim: Dim) -> int:
    """A plausible size for cost decisions: symbols count as 64."""
    if isinstance(dim, int):
        return dim
    value = substitute(dim, dict.fromkeys(symbols_of(dim), TYPICAL_SYMBOL))
    assert isinstance(value, int)
    return value
