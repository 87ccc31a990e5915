"""Which sizes could come out negative: a window larger than its image, a slice that ends before it starts.

In: size expressions over symbols that are at least 0. Out: those that cannot be shown to be at least 0 themselves.
Not done here: the check (a ``Requirement``; ``main`` asserts it before it computes with the size).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.ir.dims import Atom, Call, Dim, terms_of


def possibly_negative(dims: Iterable[Dim]) -> list[Dim]:
    """The sizes without proof, each once, in order."""
    return [dim for dim in dict.fromkeys(dims) if not _is_at_least_zero(dim)]


def _is_at_least_zero(dim: Dim) -> bool:
    return all(factor > 0 and all(map(_atom_is_at_least_zero, monomial)) for monomial, factor in terms_of(dim))


def _atom_is_at_least_zero(atom: Atom) -> bool:
    if not isinstance(atom, Call):
        return True
    if atom.function == "mod":
        return _is_at_least_zero(atom.right)  # the sign of the divisor, 0 for a divisor of 0
    sides = _is_at_least_zero(atom.left), _is_at_least_zero(atom.right)
    return any(sides) if atom.function == "max" else all(sides)
