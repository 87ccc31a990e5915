"""Upper bounds of sizes that only the data decide.

In: steps of a fused graph. Out: the bounds of its symbols, of a size. Not done here: who says that a
symbol is bounded (``SymbolRead.most``), what is planned by a bound (``memory.planned_bytes``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ingot_compiler.ir.dims import Call, Dim, evaluate, symbols_of, terms_of
from ingot_compiler.lowering.groups.fused import (
    HoldState,
    LoopStep,
    Step,
    SymbolRead,
    SymbolSet,
    all_steps,
)

Bounds = Mapping[str, int]
"""Symbol -> what it is never above."""


def size_bounds(steps: Sequence[Step]) -> Bounds:
    """The symbols that one step alone sets, by a number that is bounded."""
    read = [step for step in all_steps(steps) if isinstance(step, SymbolRead)]
    times = Counter(step.symbol for step in read)
    for step in all_steps(steps):
        if isinstance(step, SymbolSet | HoldState):
            times.update(step.symbols)
        elif isinstance(step, LoopStep):
            times.update((step.counter,))
    return {
        step.symbol: step.most
        for step in read
        if step.most is not None and step.is_size and times[step.symbol] == 1
    }


def most_of(dim: Dim, bounds: Bounds) -> int | None:
    """What a size is never above: itself with the bounds of its symbols, where it has no other and
    falls with none; else None."""
    if not bounds.keys() >= set(symbols_of(dim)):
        return None
    for monomial, factor in terms_of(dim):
        if factor < 0 or any(isinstance(atom, Call) for atom in monomial):
            return None
    return evaluate(dim, bounds)
