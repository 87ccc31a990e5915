"""Sizes of OpenCL C: as expressions, and how many work items share scratch.

In: a ``Dim`` and the names of its symbols. Out: text, ``ITEMS_MAX``. Not done here: indices, which are
instructions like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.ir.dims import Call, Dim, Symbol, terms_of

ITEMS_MAX = 8
"""How many work items may run a kernel that has scratch: they run at the same time, so the scratch of
a launch holds that of each."""
_OPERATORS = {"floordiv": "/", "mod": "%"}


def c_dim(dim: Dim, names: Mapping[str, str]) -> str:
    """A size, at least 0, whose divisors are not 0."""
    terms = [
        " * ".join([f"{factor}L", *(_atom(atom, names) for atom in monomial)])
        for monomial, factor in terms_of(dim)
    ]
    return " + ".join(terms) or "0"


def _atom(atom: Symbol | Call, names: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        return names[atom.name]
    left, right = c_dim(atom.left, names), c_dim(atom.right, names)
    if atom.function in _OPERATORS:
        return f"(({left}) {_OPERATORS[atom.function]} ({right}))"
    both = f"((long)({left}), (long)({right}))"
    if atom.function == "broadcast":
        return f"(max{both} * min(min{both}, 1L))"
    return f"{atom.function}{both}"
