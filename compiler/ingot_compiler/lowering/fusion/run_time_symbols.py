"""Symbols that steps bind while ``main`` runs: sizes that the data decide, counters of loops.

In: names. Out: which sizes are known when ``main`` begins. Not done here: the steps that bind them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.ir.dims import Dim, symbols_of


class RunTimeSymbols:
    """Names that are bound while ``main`` runs, and the values that count iterations."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._counters: dict[int, Dim] = {}
        self._count = 0

    def new(self, taken: frozenset[str]) -> str:
        """A name that no size has."""
        while True:
            self._count += 1
            name = f"control{self._count}"
            if name not in taken:
                return name

    def bind(self, names: Iterable[str]) -> None:
        """Note that steps bind these symbols."""
        self._names.update(names)

    def are_in(self, dim: Dim) -> bool:
        """Whether a size is only known while ``main`` runs."""
        return bool(self._names & set(symbols_of(dim)))

    def bind_counter(self, value: int, counter: Dim) -> None:
        """Note that a value is the iteration that a symbol counts."""
        self._counters[value] = counter

    def counter_of(self, value: int) -> Dim | None:
        """The symbol that counts what a value is, if it is an iteration."""
        return self._counters.get(value)
