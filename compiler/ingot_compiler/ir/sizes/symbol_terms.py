"""A size as a function of one symbol: the symbol that it is, or the factor that the symbol has.

In: a size expression. Out: a name, a size, or None. Not done here: the algebra of sizes (``dims``),
what binds a symbol.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import (
    Call,
    Dim,
    Symbol,
    dim_add,
    from_terms,
    lone_atom,
    symbol_set,
    terms_of,
)


def bare_symbol(dim: Dim) -> str | None:
    """``s0`` of the expression ``s0``; None for a number, ``2*s0`` and ``s0 + s1``."""
    only = lone_atom(dim)
    return only.name if isinstance(only, Symbol) else None


def coefficient(dim: Dim, name: str) -> Dim | None:
    """The factor of symbol ``name`` when ``dim`` is linear in it (0 when absent), else None."""
    factor: Dim = 0
    if name not in symbol_set(dim):
        return factor
    for monomial, scale in terms_of(dim):
        count = sum(1 for atom in monomial if atom == Symbol(name))
        if count > 1 or any(
            isinstance(atom, Call)
            and (name in symbol_set(atom.left) or name in symbol_set(atom.right))
            for atom in monomial
        ):
            return None
        if count == 1:
            rest = tuple(atom for atom in monomial if atom != Symbol(name))
            factor = dim_add(factor, from_terms({rest: scale}))
    return factor
