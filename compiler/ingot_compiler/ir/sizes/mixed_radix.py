"""Digits of a number in a mixed radix, put together again: ``d*floordiv(x, d) + mod(x, d)`` is x.

In: expressions. Out: the same values, with fewer divisions. Not done here: when (whoever takes an
index apart and multiplies the parts by strides), the canonical form (``dims``).

Radices are sizes: where one is 0, there is no number to take apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ingot_compiler.ir.dims import (
    Call,
    Dim,
    Monomial,
    dim_floordiv,
    dim_mod,
    dim_mul,
    from_terms,
    lone_atom,
    terms_of,
)

_CACHED_MAX = 1 << 12


@lru_cache(maxsize=_CACHED_MAX)
def recombined(dim: Dim) -> Dim:
    """The expression with neighbouring digits as one, until none are left."""
    while _has_mod(dim) and (found := next(_joined(dim), None)) is not None:
        dim = found
    return dim


def _has_mod(dim: Dim) -> bool:
    calls = [atom for monomial, _ in terms_of(dim) for atom in monomial if isinstance(atom, Call)]
    return any(
        call.function == "mod" or _has_mod(call.left) or _has_mod(call.right) for call in calls
    )


def _joined(dim: Dim) -> Iterator[Dim]:
    """What becomes of an expression where a digit meets all that is above it, or the next digit."""
    for monomial, factor in terms_of(dim):
        for atom in monomial:
            if isinstance(atom, Call) and atom.function == "mod":
                scale = from_terms({_without(monomial, atom): factor})
                digit = dim_mul(scale, from_terms({(atom,): 1}))
                for upper, both in _neighbours(dim, atom):
                    above = dim_mul(dim_mul(scale, atom.right), upper)
                    if _has(dim, above):
                        yield dim - above - digit + dim_mul(scale, both)


def _neighbours(dim: Dim, digit: Call) -> Iterator[tuple[Dim, Dim]]:
    """What may stand above a digit, and what the two are: all upper digits, or some of them."""
    x, radix = digit.left, digit.right
    quotients = [dim_floordiv(x, radix)]
    inner = lone_atom(x)
    if isinstance(inner, Call) and inner.function == "floordiv":  # the same with one division
        quotients.append(dim_floordiv(inner.left, dim_mul(inner.right, radix)))
    yield from ((quotient, x) for quotient in quotients)
    for monomial, _ in terms_of(dim):
        for atom in monomial:
            if isinstance(atom, Call) and atom.function == "mod" and atom.left in quotients:
                yield from_terms({(atom,): 1}), dim_mod(x, dim_mul(radix, atom.right))


def _without(monomial: Monomial, atom: Call) -> Monomial:
    at = monomial.index(atom)
    return monomial[:at] + monomial[at + 1 :]


def _has(dim: Dim, part: Dim) -> bool:
    """Whether all terms of ``part`` are terms of ``dim``, each with the same factor."""
    table = dict(terms_of(dim))
    return all(table.get(monomial) == factor for monomial, factor in terms_of(part))
