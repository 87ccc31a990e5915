"""The factor of a symbol in a size: how far apart lie the elements that an index counts.

In: a size, a symbol's name. Out: a size. Not done here: the algebra of sizes (``dims``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Call, Dim, Symbol, dim_add, from_terms, symbol_set, terms_of


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
