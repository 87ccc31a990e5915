"""The symbol that a size expression is, where it is nothing else: what a shape can bind.

In: a size expression. Out: a name, or None. Not done here: what binds it.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, Symbol, lone_atom


def bare_symbol(dim: Dim) -> str | None:
    """``s0`` of the expression ``s0``; None for a number, ``2*s0`` and ``s0 + s1``."""
    only = lone_atom(dim)
    return only.name if isinstance(only, Symbol) else None
