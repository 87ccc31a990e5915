"""The cheapest assignment of labels to variables: dynamic programming over the graph of costs.

In: how many labels each variable has, tables of costs over a few variables each, a first
assignment. Out: labels. Not done here: what labels and costs mean (``choose_devices``).

Variables are eliminated one by one, the one whose neighbours have the fewest combinations first:
a table says for each of them the best label and its cost (bucket elimination). This is exact as
long as no table becomes larger than ``COMBINATION_COUNT_MAX``. Where one would, a variable is kept
at the label that it has, and what is left is solved exactly again, from the better assignment, until
nothing is won. So the result is never worse than the first assignment. Costs are integers: their
sums do not depend on an order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

COMBINATION_COUNT_MAX = 1 << 14
FORBIDDEN = 1 << 52
"""A cost that no sum of others reaches."""
_ROUND_COUNT_MAX = 4

Table = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Costs:
    """``table[labels of the variables]``; ``variables`` ascend."""

    variables: tuple[int, ...]
    table: Table


def least_cost(
    label_counts: Sequence[int], costs: Sequence[Costs], first: Sequence[int]
) -> tuple[int, ...]:
    """The labels with the least sum of costs; of equal ones the lowest labels, from the last
    variable that was eliminated on."""
    best, kept = tuple(first), frozenset[int]()
    for _ in range(_ROUND_COUNT_MAX):
        run = _Elimination(label_counts, costs, best, kept)
        found = run.labels()
        if total_cost(costs, found) < total_cost(costs, best):
            best = found
        elif not run.kept or kept:
            break
        kept = frozenset(run.kept)  # others are kept in the next round, as far as it can be
        if not kept:
            break
    return best


def total_cost(costs: Sequence[Costs], labels: Sequence[int]) -> int:
    """The sum of all costs of an assignment."""
    return sum(int(each.table[tuple(labels[v] for v in each.variables)]) for each in costs)


@dataclass(slots=True)
class _Elimination:
    """One pass over all variables. ``avoided``: variables that are not to be kept if another one
    will do."""

    label_counts: Sequence[int]
    costs: Sequence[Costs]
    current: Sequence[int]
    avoided: frozenset[int]
    kept: set[int] = field(default_factory=set[int])
    _touching: list[dict[int, Costs]] = field(init=False)
    _next_id: int = 0

    def labels(self) -> tuple[int, ...]:
        """Eliminate forwards, decide backwards."""
        self._touching = [{} for _ in self.label_counts]
        for each in self.costs:
            self._put(each)
        decided: list[tuple[int, Costs]] = []
        waiting = [(self._combinations(v), v) for v in range(len(self.label_counts))]
        heapq.heapify(waiting)
        gone: set[int] = set()
        while waiting:
            size, variable = heapq.heappop(waiting)
            if variable in gone:
                continue
            actual = self._combinations(variable)
            if actual > size:
                heapq.heappush(waiting, (actual, variable))
                continue
            if actual > COMBINATION_COUNT_MAX:
                variable = self._keep_one(variable)
                changed = self._neighbours(variable)
                self._fix(variable)
            else:
                changed = self._neighbours(variable)
                decided.append((variable, self._eliminate(variable)))
            gone.add(variable)
            for other in changed:
                heapq.heappush(waiting, (self._combinations(other), other))
        return self._decide(decided)

    def _decide(self, decided: Sequence[tuple[int, Costs]]) -> tuple[int, ...]:
        labels = list(self.current)
        for variable, choice in reversed(decided):
            labels[variable] = int(choice.table[tuple(labels[v] for v in choice.variables)])
        return tuple(labels)

    def _put(self, costs: Costs) -> None:
        for variable in costs.variables:
            self._touching[variable][self._next_id] = costs
        self._next_id += 1

    def _take(self, variable: int) -> list[Costs]:
        """The tables over a variable, which are no longer there."""
        taken = dict(self._touching[variable])
        for number, costs in taken.items():
            for other in costs.variables:
                del self._touching[other][number]
        return list(taken.values())

    def _neighbours(self, variable: int) -> list[int]:
        found = {v for costs in self._touching[variable].values() for v in costs.variables}
        return sorted(found - {variable})

    def _combinations(self, variable: int) -> int:
        count = self.label_counts[variable]
        for other in self._neighbours(variable):
            count *= self.label_counts[other]
        return count

    def _eliminate(self, variable: int) -> Costs:
        """Replace a variable by what its best label costs; return that label for each combination
        of its neighbours."""
        others = tuple(self._neighbours(variable))
        scope = tuple(sorted((*others, variable)))
        total = np.zeros([self.label_counts[v] for v in scope], np.int64)
        for costs in self._take(variable):
            axes = [self.label_counts[v] if v in costs.variables else 1 for v in scope]
            total = np.minimum(total + costs.table.reshape(axes), FORBIDDEN)
        axis = scope.index(variable)
        if others:
            self._put(Costs(others, np.asarray(total.min(axis))))
        return Costs(others, np.asarray(total.argmin(axis)))

    def _keep_one(self, variable: int) -> int:
        """Of a variable and its neighbours the one that most tables are over."""
        around = [variable, *self._neighbours(variable)]
        wanted = [v for v in around if v not in self.avoided] or around
        return min(wanted, key=lambda v: (-len(self._touching[v]), v))

    def _fix(self, variable: int) -> None:
        self.kept.add(variable)
        for costs in self._take(variable):
            axis = costs.variables.index(variable)
            others = tuple(v for v in costs.variables if v != variable)
            if others:
                self._put(Costs(others, np.take(costs.table, self.current[variable], axis)))
