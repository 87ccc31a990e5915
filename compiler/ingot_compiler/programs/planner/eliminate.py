"""Finds the cheapest choice of one candidate for each variable, by eliminating one variable after
the other.

In: the candidates of each variable, and tables of costs over pairs of them. Out: the candidate of
each variable. Not done here: what variables and costs mean (``choose_copies``).

This is dynamic programming over a tree decomposition: exact, and fast where the tables stay small,
as they do for chains, trees and the branches of networks. Where a table would have more than
``TABLE_SIZE_MAX`` rows, the variable in most tables takes its cheapest candidate first, and the
total may be above the least.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TABLE_SIZE_MAX = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """The cost of each choice of candidates for the variables of ``scope``."""

    scope: tuple[int, ...]
    costs: dict[tuple[int, ...], int]

    def without(self, variable: int, candidate: int) -> CostTable:
        """The table that is left when a variable has its candidate."""
        place = self.scope.index(variable)
        costs = {
            (*row[:place], *row[place + 1 :]): cost
            for row, cost in self.costs.items()
            if row[place] == candidate
        }
        return CostTable((*self.scope[:place], *self.scope[place + 1 :]), costs)


@dataclass(frozen=True, slots=True)
class _Step:
    """A variable that has been eliminated: its best candidate by those of the variables around."""

    variable: int
    around: tuple[int, ...]
    best: dict[tuple[int, ...], int]


class Elimination:
    """Variables by number, the tables of each, and what has been eliminated; one use."""

    def __init__(
        self,
        allowed: Sequence[Sequence[int]],
        pairs: Iterable[tuple[tuple[int, int], Sequence[Sequence[int]]]],
    ) -> None:
        """``pairs``: two variables, and the cost by their candidates."""
        self._allowed = allowed
        self._tables: list[dict[CostTable, None]] = [{} for _ in allowed]
        self._steps: list[_Step] = []
        self._waiting = set(range(len(allowed)))
        self._heap: list[tuple[int, int]] = []
        for (left, right), costs in pairs:
            if left != right:
                rows = itertools.product(allowed[left], allowed[right])
                self._add(CostTable((left, right), {row: costs[row[0]][row[1]] for row in rows}))

    def run(self) -> list[int]:
        """The candidate of each variable; the first ones where the costs are equal."""
        for variable, candidates in enumerate(self._allowed):
            if len(candidates) == 1:
                self._decide(variable, candidates[0])
        self._heap = [(self._size(variable), variable) for variable in sorted(self._waiting)]
        heapq.heapify(self._heap)
        while self._waiting:
            size, variable = heapq.heappop(self._heap)
            if variable not in self._waiting or size != self._size(variable):
                continue  # it was pushed again when its size changed
            if size > TABLE_SIZE_MAX:
                self._decide_most_read()
                heapq.heappush(self._heap, (self._size(variable), variable))
            else:
                self._eliminate(variable)
        taken: dict[int, int] = {}
        for step in reversed(self._steps):
            taken[step.variable] = step.best[tuple(taken[other] for other in step.around)]
        return [taken[variable] for variable in range(len(self._allowed))]

    def _add(self, table: CostTable) -> None:
        for variable in table.scope:
            self._tables[variable][table] = None

    def _remove(self, table: CostTable) -> None:
        for variable in table.scope:
            del self._tables[variable][table]

    def _around(self, variable: int) -> tuple[int, ...]:
        found = {other for table in self._tables[variable] for other in table.scope}
        return tuple(sorted(found - {variable}))

    def _size(self, variable: int) -> int:
        size = len(self._allowed[variable])
        for other in self._around(variable):
            size *= len(self._allowed[other])
        return size

    def _decide(self, variable: int, candidate: int) -> None:
        """Give a variable its candidate; its tables go on without it."""
        around = self._around(variable)
        for table in list(self._tables[variable]):
            self._remove(table)
            self._add(table.without(variable, candidate))
        self._done(_Step(variable, (), {(): candidate}), around)

    def _decide_most_read(self) -> None:
        variable = max(self._waiting, key=lambda one: (len(self._tables[one]), -one))

        def least(candidate: int) -> int:
            tables = (table.without(variable, candidate) for table in self._tables[variable])
            return sum(min(table.costs.values()) for table in tables)

        self._decide(variable, min(self._allowed[variable], key=lambda one: (least(one), one)))

    def _eliminate(self, variable: int) -> None:
        """Replace the tables of a variable by one over the variables around it."""
        around, tables = self._around(variable), list(self._tables[variable])
        scope = (*around, variable)
        places = [tuple(scope.index(one) for one in table.scope) for table in tables]
        made: dict[tuple[int, ...], int] = {}
        best: dict[tuple[int, ...], int] = {}
        for row in itertools.product(*(self._allowed[other] for other in around)):
            costs: list[tuple[int, int]] = []
            for candidate in self._allowed[variable]:
                full = (*row, candidate)
                cost = 0
                for table, indices in zip(tables, places, strict=True):
                    cost += table.costs[tuple(full[index] for index in indices)]
                costs.append((cost, candidate))
            made[row], best[row] = min(costs)
        for table in tables:
            self._remove(table)
        if around:
            self._add(CostTable(around, made))
        self._done(_Step(variable, around, best), around)

    def _done(self, step: _Step, around: Iterable[int]) -> None:
        self._steps.append(step)
        self._waiting.discard(step.variable)
        for other in around:
            if other in self._waiting:
                heapq.heappush(self._heap, (self._size(other), other))
