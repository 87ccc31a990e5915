"""Makes scalars of the expressions that depend on the scalars of a kernel alone.

In: the names of scalars, index expressions. Out: the same expressions over more scalars and fewer
terms, and what each of these stands for. Not done here: which programs it is worth while for
(``kernel_of``).

A scalar is at least 0, as every symbol is: what may be negative stays an expression of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field

from ingot_compiler.ir.dims import (
    FUNCTIONS,
    Atom,
    Dim,
    Monomial,
    Sum,
    Symbol,
    dim_mul,
    from_terms,
    lone_atom,
    symbol,
    symbol_set,
)
from ingot_compiler.ir.sizes.ranges import is_nonnegative
from ingot_runtime.lazy_dataclass import dataclass

_Part = tuple[Monomial, int]
"""What changes within the kernel, and the sign of what stands beside it: 0 for none that a scalar
could be."""


@dataclass(slots=True)
class FixedSums:
    """``scalars`` do not change within a kernel; ``names``: what was found -> the scalar that
    stands for it."""

    scalars: frozenset[str]
    names: dict[Dim, str] = field(default_factory=dict[Dim, str])
    _known: dict[Sum, Dim] = field(default_factory=dict[Sum, Dim])

    def shorter(self, dim: Dim) -> Dim:
        """A shorter form of a size: what is fixed beside each product of what changes becomes a
        scalar."""
        if not isinstance(dim, Sum):
            return dim
        if dim not in self._known:
            self._known[dim] = self._shorter(dim)
        return self._known[dim]

    def _shorter(self, dim: Sum) -> Dim:
        parts: dict[_Part, dict[Monomial, int]] = {}
        for monomial, factor in dim.terms:
            fixed = tuple([atom for atom in monomial if self._is_fixed(atom)])
            changing = tuple([atom for atom in monomial if atom not in fixed])
            sign = (1 if factor > 0 else -1) if _can_be_scalar(fixed) else 0
            parts.setdefault((changing, sign), {})[fixed] = factor
        total: Dim = 0
        for (changing, sign), beside in parts.items():
            total += dim_mul(self._factor(beside, sign), self._product(changing))
        return total

    def _factor(self, terms: dict[Monomial, int], sign: int) -> Dim:
        """A multiple of one scalar, or the terms as they are; the multiple stays a number, for what
        it divides can be seen."""
        if not sign:
            total: Dim = 0
            for monomial, factor in terms.items():
                total += dim_mul(factor, self._product(monomial))
            return total
        unit = sign * math.gcd(*terms.values())
        found = from_terms({monomial: factor // unit for monomial, factor in terms.items()})
        if isinstance(lone_atom(found), Symbol):
            return dim_mul(unit, found)
        # No model's size has such a name.
        return dim_mul(unit, symbol(self.names.setdefault(found, f"+{len(self.names)}")))

    def _product(self, atoms: Iterable[Atom]) -> Dim:
        product: Dim = 1
        for atom in atoms:
            product = dim_mul(product, self._atom(atom))
        return product

    def _atom(self, atom: Atom) -> Dim:
        if isinstance(atom, Symbol):
            return symbol(atom.name)
        return FUNCTIONS[atom.function](self.shorter(atom.left), self.shorter(atom.right))

    def _is_fixed(self, atom: Atom) -> bool:
        if isinstance(atom, Symbol):
            return atom.name in self.scalars
        return symbol_set(atom.left) | symbol_set(atom.right) <= self.scalars


def _can_be_scalar(product: Monomial) -> bool:
    if all(isinstance(atom, Symbol) for atom in product):  # nearly all of them
        return bool(product)
    return is_nonnegative(from_terms({product: 1}))
