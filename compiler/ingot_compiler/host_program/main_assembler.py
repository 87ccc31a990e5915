"""Writes instructions of ``main``: registers for size expressions, labels, refusals of numbers that
would wrap around.

In: expressions over sizes, one at a time. Out: instructions in order. Not done here: which ones a
program needs (``main_program``).

Registers are 64 bits wide and wrap. A size beyond ``SIZE_BYTES_MAX`` and a product that could wrap
are refused before they are computed: what ``main`` computes with sizes is what the expression says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ingot_compiler.ir.dims import (
    Atom,
    Call,
    Dim,
    Monomial,
    Symbol,
    dim_add,
    dim_mul,
    from_terms,
    symbols_of,
    terms_of,
)
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.sizes.ranges import is_nonnegative
from ingot_compiler.memory.memory_plan import ALIGNMENT_BYTES
from ingot_runtime.format.limits import SIZE_BYTES_MAX
from ingot_runtime.format.program import CODES, Instruction, operand_kinds

TOO_LARGE = "these sizes are too large"
_SIZE_MAX = SIZE_BYTES_MAX  # of one dimension
_NUMBER_MAX = 1 << 58  # of every product: a sum of some of them stays in 64 bits
_SHORT_TERM_COUNT = 8  # sums up to that are added up term by term


class Assembler:
    """Allocates registers and appends instructions; equal expressions share a register."""

    def __init__(self, makers: Mapping[str, Sequence[int]]) -> None:
        """``makers``: which nodes compute a symbol that is no size of an input."""
        self.makers = makers
        self.instructions: list[Instruction] = []
        self.messages: dict[str, Text] = {}  # as the program has them -> with references
        self.labels: list[int] = []
        self.known: dict[Dim, int] = {}
        self.symbols: dict[str, int] = {}
        self.register_count = 0
        self.long_sum: Dim = 0
        self.too_large: Text = TOO_LARGE  # what a refusal says

    def emit(self, name: str, *operands: int | tuple[int, ...]) -> None:
        """Append one instruction."""
        self.instructions.append((CODES[name], operands))

    def register(self) -> int:
        """A fresh register."""
        self.register_count += 1
        return self.register_count - 1

    def binary(self, name: str, left: int, right: int) -> int:
        """A register that holds ``left name right``."""
        result = self.register()
        self.emit(name, result, left, right)
        return result

    def rounded(self, register: int) -> int:
        """A register that holds a size, rounded up to where the next buffer may begin."""
        raised = self.binary("add", register, self.dim(ALIGNMENT_BYTES - 1))
        unit = self.dim(ALIGNMENT_BYTES)
        return self.binary("mul", self.binary("floordiv", raised, unit), unit)

    def dim(self, dim: Dim) -> int:
        """A register that holds an expression."""
        if dim not in self.known:
            self.known[dim] = self._constant(dim) if isinstance(dim, int) else self._sum(dim)
        return self.known[dim]

    def is_bound(self, dim: Dim) -> bool:
        """Whether ``dim`` can be computed here: all its symbols have values."""
        return all(name in self.symbols for name in symbols_of(dim))

    def _constant(self, value: int) -> int:
        result = self.register()
        self.emit("const", result, value)
        return result

    def _sum(self, dim: Dim) -> int:
        total, terms = self._start(dim)
        for monomial, factor in terms:
            current = self._term(monomial, factor)
            total = current if total is None else self.binary("add", total, current)
        assert total is not None
        return total

    def _start(self, dim: Dim) -> tuple[int | None, Sequence[tuple[Monomial, int]]]:
        """Where a sum begins, and the terms to add: a long one at the last long one, if that is
        near. The places of a Concat's parts are each one size behind the one before."""
        terms, last = terms_of(dim), self.long_sum
        if len(terms) <= _SHORT_TERM_COUNT:
            return None, terms
        self.long_sum = dim
        between = terms_of(dim_add(dim, dim_mul(last, -1)))
        if last in self.known and len(between) < len(terms):
            return self.known[last], between
        return None, terms

    def _term(self, monomial: Monomial, factor: int) -> int:
        """``factor * monomial``, refused where it could wrap."""
        if not monomial:
            return self.dim(factor)
        if factor == 1:
            return self._product(monomial)
        current = self.dim(from_terms({monomial: 1}))
        if (
            abs(factor) * _SIZE_MAX > _NUMBER_MAX
            or len(monomial) > 1
            or any(isinstance(atom, Call) for atom in monomial)
        ):
            self._limit(current, monomial, self.dim(_NUMBER_MAX // abs(factor)))
        return self.binary("mul", self.dim(factor), current)

    def _product(self, monomial: Monomial) -> int:
        """The factors of a monomial multiplied, one after the other."""
        current = self._atom(monomial[0])
        for position, atom in enumerate(monomial[1:], 1):
            register, most = self._atom(atom), self.dim(_NUMBER_MAX)
            limit = self.binary("floordiv", most, self._magnitude(register, (atom,), self.dim(1)))
            self._limit(current, monomial[:position], limit)
            current = self.binary("mul", current, register)
        return current

    def _magnitude(self, register: int, monomial: Monomial, least: int) -> int:
        """The larger of a register's absolute value and ``least``."""
        if not is_nonnegative(from_terms({monomial: 1})):
            register = self.binary("max", register, self.binary("sub", self.dim(0), register))
        return self.binary("max", register, least)

    def _limit(self, register: int, monomial: Monomial, limit: int) -> None:
        if not is_nonnegative(from_terms({monomial: 1})):
            register = self._magnitude(register, monomial, self.dim(0))
        self.require(self.binary("le", register, limit), self.too_large)

    def bind(self, symbol: str, register: int) -> None:
        """Give a symbol its value, at least 0 already."""
        self.require(self.binary("le", register, self.dim(_SIZE_MAX)), TOO_LARGE)
        self.symbols[symbol] = register

    def _atom(self, atom: Atom) -> int:
        if isinstance(atom, Symbol):
            if atom.name not in self.symbols:
                raise InternalError(
                    f"symbol {atom.name} is not bound", why="an input or a read_dim must bind it"
                )
            return self.symbols[atom.name]
        assert isinstance(atom, Call)
        left, right = self.dim(atom.left), self.dim(atom.right)
        if atom.function != "broadcast":
            return self.binary(atom.function, left, right)
        some = self.binary("min", self.binary("min", left, right), self.dim(1))
        return self.binary("mul", self.binary("max", left, right), some)

    def changing(self, symbol: str) -> int:
        """The register of a symbol that is about to change; expressions over it are computed
        anew."""
        self.known = without_symbols(self.known, (symbol,))
        if symbol not in self.symbols:
            self.symbols[symbol] = self.register()
        return self.symbols[symbol]

    def label(self) -> int:
        """A new label, to be placed once."""
        self.labels.append(-1)
        return len(self.labels) - 1

    def place(self, label: int) -> None:
        """Let the label name the next instruction."""
        self.labels[label] = len(self.instructions)

    def resolved(self) -> tuple[Instruction, ...]:
        """The instructions, with positions in the place of labels."""
        return tuple(
            (
                code,
                tuple(
                    self.labels[item] if kind == "l" and isinstance(item, int) else item
                    for kind, item in zip(operand_kinds(code), operands, strict=True)
                ),
            )
            for code, operands in self.instructions
        )

    def require(self, condition: int, message: Text) -> None:
        """Fail with ``message`` unless the register is non-zero."""
        self.emit("assert", condition, self.message(message))

    def message(self, text: Text) -> int:
        """The number of a text."""
        self.messages.setdefault(str(text), text)
        return list(self.messages).index(str(text))


def without_symbols(known: Mapping[Dim, int], names: Collection[str]) -> dict[Dim, int]:
    """Registers of expressions that do not use any of ``names``."""
    return {
        dim: register for dim, register in known.items() if not set(symbols_of(dim)) & set(names)
    }
