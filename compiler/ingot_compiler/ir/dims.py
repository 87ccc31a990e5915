"""Integer expressions over symbols: sizes of dynamic dimensions, strides, buffer indices.

In: integers and symbols. Out: ``Dim`` values in one canonical form (a sum of products), so that
equal expressions are equal objects. Not done here: ranges and proofs beyond what the canonical form
shows, binding of symbols.

Every symbol stands for an integer >= 0. ``floordiv`` and ``mod`` round to -infinity; a divisor of 0
gives 0.

An expression has at most ``TERM_COUNT_MAX`` terms, ``SIZE_MAX`` symbols, factors and functions as
it is written out, ``DEPTH_MAX`` functions inside one another, and factors below ``FACTOR_MAX``:
whoever makes a larger one gets a ``LimitError`` without a place. So a walk over an expression takes
bounded time and stack. Networks stay far below.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.long_division import divided, whole_quotient

# Pure functions of frozen values: what they return is kept, and never changes.
_CACHED_MAX = 1 << 16
TERM_COUNT_MAX = 1024  # a product of four sums of five: all pads of an image known at run time
SIZE_MAX = 1 << 13
DEPTH_MAX = 64  # walks are a few calls of Python per level
FACTOR_MAX = 1 << 62  # registers are 64 bits wide
_PLAIN_NAME = re.compile(r"[^\W\d][\w.:]*")  # in which nothing looks like an operator or a number
RESERVED = frozenset(("true", "false", "inf", "nan"))
"""Words that the text form reads as a value, not as a symbol."""


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A named integer, bound at run time."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """``function(left, right)`` that has no polynomial form; functions:
    ``floordiv mod min max broadcast``."""

    function: str
    left: Dim
    right: Dim
    # Taken once, from those of the parts.
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    size: int = field(init=False, repr=False, compare=False, default=0)
    depth: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        parts = [part for part in (self.left, self.right) if isinstance(part, Sum)]
        object.__setattr__(self, "_hash", hash((self.function, self.left, self.right)))
        object.__setattr__(self, "size", 1 + sum(part.size for part in parts))
        object.__setattr__(self, "depth", 1 + max((part.depth for part in parts), default=0))

    def __hash__(self) -> int:
        return self._hash


Atom = Symbol | Call
Monomial = tuple[Atom, ...]  # sorted, with repetition; () is the constant term


@dataclass(frozen=True, slots=True)
class Sum:
    """Canonical polynomial: ``terms`` maps sorted monomials to non-zero coefficients, sorted, never
    a bare constant."""

    terms: tuple[tuple[Monomial, int], ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    size: int = field(init=False, repr=False, compare=False, default=0)
    depth: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        size = depth = factor_max = 0
        for monomial, factor in self.terms:
            size += 1 + len(monomial)
            factor_max = max(factor_max, abs(factor))
            for atom in monomial:
                if isinstance(atom, Call):
                    size += atom.size
                    depth = max(depth, atom.depth)
        _limit(len(self.terms), TERM_COUNT_MAX, "terms")
        _limit(size, SIZE_MAX, "symbols, factors and functions")
        _limit(depth, DEPTH_MAX, "functions inside one another")
        _limit(factor_max, FACTOR_MAX, "as a factor")
        object.__setattr__(self, "_hash", hash(self.terms))
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "depth", depth)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        return dim_add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return dim_add(self, dim_mul(other, -1))

    def __rsub__(self, other: Dim) -> Dim:
        return dim_add(other, dim_mul(self, -1))

    def __mul__(self, other: Dim) -> Dim:
        return dim_mul(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return dim_floordiv(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return dim_floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return dim_mod(self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return dim_mod(other, self)

    def __neg__(self) -> Dim:
        return dim_mul(self, -1)

    def __str__(self) -> str:
        return format_dim(self)


Dim = int | Sum


def _limit(found: int, limit: int, what: str) -> None:
    if found > limit:
        raise LimitError(
            "the expression of a size is too large",
            why=f"expected at most {limit} {what}, got {found}",
            do="give sizes of inputs as numbers, or compute with smaller ones",
        )


def is_symbol_name(name: str) -> bool:
    """Whether the text form can hold a symbol of this name."""
    return name.isascii() and name.isidentifier() and name not in RESERVED


@lru_cache(maxsize=_CACHED_MAX)
def symbol(name: str) -> Sum:
    """The expression that is just the symbol ``name``."""
    return Sum((((Symbol(name),), 1),))


@lru_cache(maxsize=_CACHED_MAX)
def _atom_key(atom: Atom) -> str:
    if isinstance(atom, Symbol):
        return atom.name
    return f"~{atom.function}({format_dim(atom.left)},{format_dim(atom.right)})"


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    return -len(monomial), tuple(_atom_key(atom) for atom in monomial)


def terms_of(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    """The terms of any expression; an integer is one constant term, 0 has none."""
    if isinstance(dim, Sum):
        return dim.terms
    return (((), dim),) if dim else ()


def lone_atom(dim: Dim) -> Atom | None:
    """The symbol or function that is all of an expression."""
    terms = terms_of(dim)
    atoms, factor = terms[0] if len(terms) == 1 else ((), 0)
    return atoms[0] if factor == 1 and len(atoms) == 1 else None


def from_terms(terms: Mapping[Monomial, int]) -> Dim:
    """Build the canonical expression of a term table."""
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Sum(tuple(sorted(kept.items(), key=lambda term: _monomial_key(term[0]))))


def dim_add(left: Dim, right: Dim) -> Dim:
    """Left + right."""
    return left + right if isinstance(left, int) and isinstance(right, int) else _add(left, right)


@lru_cache(maxsize=_CACHED_MAX)
def _add(left: Dim, right: Dim) -> Dim:
    table = dict(terms_of(left))
    for monomial, factor in terms_of(right):
        table[monomial] = table.get(monomial, 0) + factor
    return from_terms(table)


def dim_mul(left: Dim, right: Dim) -> Dim:
    """Left * right."""
    return left * right if isinstance(left, int) and isinstance(right, int) else _mul(left, right)


@lru_cache(maxsize=_CACHED_MAX)
def _mul(left: Dim, right: Dim) -> Dim:
    table: dict[Monomial, int] = {}
    _limit(len(terms_of(left)) * len(terms_of(right)), SIZE_MAX, "terms before they are added up")
    for monomial_left, factor_left in terms_of(left):
        for monomial_right, factor_right in terms_of(right):
            monomial = tuple(sorted(monomial_left + monomial_right, key=_atom_key))
            table[monomial] = table.get(monomial, 0) + factor_left * factor_right
    return from_terms(table)


def _call(function: str, left: Dim, right: Dim) -> Dim:
    _limit(max(abs(d) for d in (left, right, 0) if isinstance(d, int)), FACTOR_MAX, "as a number")
    return Sum((((Call(function, left, right),), 1),))


def _split_multiple(dim: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """Write ``dim = quotient * divisor + rest``; a divisor of several terms divides all or none."""
    divisor_terms = terms_of(divisor)
    if not divisor_terms:
        return 0, dim
    (monomial_divisor, factor_divisor), *others = divisor_terms
    if others:  # a reshape to -1 divides (a + 1) * (b + 1), multiplied out
        whole = whole_quotient(dict(terms_of(dim)), divisor_terms, _atom_key)
        return (0, dim) if whole is None else (from_terms(whole), 0)
    quotient, rest = divided(terms_of(dim), monomial_divisor, factor_divisor)
    return from_terms(quotient), from_terms(rest)


def dim_floordiv(left: Dim, right: Dim) -> Dim:
    """Left // right, rounding to -infinity; 0 for a divisor of 0."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right if right else 0
    if right == 1 or left == 0:
        return left
    quotient, rest = _split_multiple(left, right)
    if isinstance(right, int) and isinstance(rest, int):
        return dim_add(quotient, rest // right if right else 0)
    if rest == 0:
        # x*d // d is x except for d = 0, where both sides stand for an empty range.
        return quotient
    return dim_add(quotient, _call("floordiv", rest, right))


def dim_mod(left: Dim, right: Dim) -> Dim:
    """Left % right with the sign of the divisor; 0 for a divisor of 0."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right if right else 0
    if right == 1 or left == 0:
        return 0
    _, rest = _split_multiple(left, right)
    if (inner := _without_inner_mod(rest, right)) != rest:
        return dim_mod(inner, right)
    if isinstance(right, int) and isinstance(rest, int):
        return rest % right if right else 0
    return 0 if rest == 0 else _call("mod", rest, right)


def _without_inner_mod(dim: Dim, divisor: Dim) -> Dim:
    """``dim`` with x for each ``mod(x, d)`` where ``divisor`` divides d: the same modulo it."""
    total: Dim = dim
    for monomial, factor in terms_of(dim):
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Call) and atom.function == "mod":
            d = atom.right
            numbers = isinstance(d, int) and isinstance(divisor, int) and d and divisor
            if d == divisor or (numbers and dim_mod(d, divisor) == 0):
                total += factor * (atom.left - _call("mod", atom.left, d))
    return total


def dim_min(left: Dim, right: Dim) -> Dim:
    """The smaller of two."""
    return _extreme("min", "max", left, right)


def dim_max(left: Dim, right: Dim) -> Dim:
    """The larger of two."""
    return _extreme("max", "min", left, right)


def _extreme(function: str, dual: str, left: Dim, right: Dim) -> Dim:
    """``min`` or ``max``, flattened, without repetition and what absorption removes:
    ``max(a, min(a, b))`` is ``a``."""
    difference = dim_add(left, dim_mul(right, -1))
    if isinstance(difference, int):
        return left if (difference <= 0) == (function == "min") else right
    kept: list[Dim] = []
    for dim in (*choices(function, left), *choices(function, right)):
        kept = _with_argument(function, kept, dim)
    absorbed = [
        dim for dim in kept if any(other in choices(dual, dim) for other in kept if other != dim)
    ]
    return _nest(function, sorted((dim for dim in kept if dim not in absorbed), key=format_dim))


def dim_broadcast(left: Dim, right: Dim) -> Dim:
    """The size that two sizes broadcast to: the other one where one of them is 1. They are equal
    otherwise: what is seen of a number decides."""
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right) * min(left, right, 1)
    sizes = {*choices("broadcast", left), *choices("broadcast", right)} - {1}
    sizes = {size for size in sizes if not _is_part_of(size, sizes)}
    number = next((size for size in sizes if isinstance(size, int)), None)
    return _nest("broadcast", sorted(sizes, key=format_dim)) if number is None else number


def _is_part_of(size: Dim, others: Collection[Dim]) -> bool:
    """Whether it is the least of one of the others and of positive numbers, so that it is that one
    or 1 where that one is 1, too; or what one of them is wherever it is a size, not below 0."""
    if dim_max(size, 0) in others and dim_max(size, 0) != size:
        return True
    least = choices("min", size)
    return len(least) > 1 and all(
        each > 0 if isinstance(each, int) else each in others for each in least
    )


def _nest(function: str, dims: Sequence[Dim]) -> Dim:
    """One call over all, no deeper than it must be."""
    if len(dims) == 1:
        return dims[0]
    half = (len(dims) + 1) // 2
    return _call(function, _nest(function, dims[:half]), _nest(function, dims[half:]))


def choices(function: str, dim: Dim) -> tuple[Dim, ...]:
    """What a nest of ``function`` chooses from; just ``dim`` when it is none."""
    atom = lone_atom(dim)
    if isinstance(atom, Call) and atom.function == function:
        return *choices(function, atom.left), *choices(function, atom.right)
    return (dim,)


def _with_argument(function: str, kept: list[Dim], dim: Dim) -> list[Dim]:
    """Add one argument; of two with a constant difference only the deciding one stays."""
    result: list[Dim] = []
    for other in kept:
        difference = dim_add(dim, dim_mul(other, -1))
        if not isinstance(difference, int):
            result.append(other)
        elif (difference >= 0) if function == "min" else (difference <= 0):
            return kept
    return [*result, dim]


FUNCTIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": dim_floordiv,
    "mod": dim_mod,
    "min": dim_min,
    "max": dim_max,
    "broadcast": dim_broadcast,
}


def dim_product(dims: tuple[Dim, ...]) -> Dim:
    """The number of elements of a shape; 1 for rank 0."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if len(numbers) == len(dims):  # nearly all of them
        return math.prod(numbers)
    total: Dim = 1
    for dim in dims:
        total = dim_mul(total, dim)
    return total


def substitute(dim: Dim, bindings: Mapping[str, Dim]) -> Dim:
    """Replace symbols by expressions or integers; unbound symbols stay."""
    if isinstance(dim, int) or symbol_set(dim).isdisjoint(bindings):
        return dim
    total: Dim = 0
    for monomial, factor in dim.terms:
        product: Dim = factor
        for atom in monomial:
            product = dim_mul(product, _substitute_atom(atom, bindings))
        total = dim_add(total, product)
    return total


def _substitute_atom(atom: Atom, bindings: Mapping[str, Dim]) -> Dim:
    if isinstance(atom, Symbol):
        bound = bindings.get(atom.name)
        return symbol(atom.name) if bound is None else bound
    left, right = substitute(atom.left, bindings), substitute(atom.right, bindings)
    return FUNCTIONS[atom.function](left, right)


def evaluate(dim: Dim, bindings: Mapping[str, int]) -> int:
    """The integer value under ``bindings``; KeyError names an unbound symbol."""
    if isinstance(dim, int):
        return dim
    if symbol_set(dim) <= bindings.keys():
        return _evaluate(dim, bindings)
    value = substitute(dim, bindings)  # what is unbound may be multiplied by 0
    if isinstance(value, int):
        return value
    raise KeyError(next(symbols_of(value)))


def _evaluate(dim: Dim, bindings: Mapping[str, int]) -> int:
    """The integer value of a size, all of whose symbols are bound."""
    if isinstance(dim, int):
        return dim
    total = 0
    for monomial, factor in dim.terms:
        product = factor
        for atom in monomial:
            product *= (
                bindings[atom.name] if isinstance(atom, Symbol) else _evaluate_call(atom, bindings)
            )
        total += product
    return total


def _evaluate_call(call: Call, bindings: Mapping[str, int]) -> int:
    value = FUNCTIONS[call.function](
        _evaluate(call.left, bindings), _evaluate(call.right, bindings)
    )
    assert isinstance(value, int)
    return value


def symbols_of(dim: Dim) -> Iterator[str]:
    """Names of the symbols in ``dim``, with repetition."""
    for monomial, _ in terms_of(dim):
        yield from symbols_of_product(monomial)


def symbols_of_product(monomial: Monomial) -> Iterator[str]:
    """Names of the symbols in one product, with repetition."""
    for atom in monomial:
        if isinstance(atom, Symbol):
            yield atom.name
        else:
            yield from symbols_of(atom.left)
            yield from symbols_of(atom.right)


@lru_cache(maxsize=_CACHED_MAX)
def symbol_set(dim: Dim) -> frozenset[str]:
    """Names of the symbols in ``dim``."""
    atoms = {atom for monomial, _ in terms_of(dim) for atom in monomial}
    names = {atom.name for atom in atoms if isinstance(atom, Symbol)}
    parts = [
        symbol_set(part)
        for atom in atoms
        if isinstance(atom, Call)
        for part in (atom.left, atom.right)
    ]
    return frozenset(names.union(*parts))


@lru_cache(maxsize=_CACHED_MAX)
def format_dim(dim: Dim) -> str:
    """Text form, read back by the IR parser: ``2*batch*seq + floordiv(h, 2) - 1``."""
    return format_dim_in_names(dim, {})


def format_dim_in_names(dim: Dim, called: Mapping[str, str]) -> str:
    """The text of a size with other names: ``called`` symbol -> its name, any text. Inside a larger
    expression, a name that could be read as one itself stands in quotes."""
    if isinstance(dim, int):
        return str(dim)
    if isinstance(alone := lone_atom(dim), Symbol):
        return called.get(alone.name, alone.name)
    text = ""
    for monomial, factor in dim.terms:
        atoms = "*".join(_format_atom(atom, called) for atom in monomial)
        size = abs(factor)
        body = str(size) if not atoms else atoms if size == 1 else f"{size}*{atoms}"
        sign = (" - " if factor < 0 else " + ") if text else ("-" if factor < 0 else "")
        text += sign + body
    return text


def _format_atom(atom: Atom, called: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        name = called.get(atom.name, atom.name)
        return name if _PLAIN_NAME.fullmatch(name) else f"'{name}'"
    left, right = (format_dim_in_names(dim, called) for dim in (atom.left, atom.right))
    return f"{atom.function}({left}, {right})"
