"""Finds the cheapest choice of one candidate for each variable, by eliminating one variable after
the other.

In: the number of candidates of each variable, and tables of costs over pairs of them. Out: the
candidate of each variable. Not done here: what variables and costs mean (``choose_copies``).

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
from math import prod

TABLE_SIZE_MAX = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """The cost of each choice of candidates for the variables of ``scope``, row-major."""

    scope: tuple[int, ...]
    costs: list[int]


@dataclass(frozen=True, slots=True)
class _Step:
    """A variable that has been eliminated: its best candidate by those of the variables around."""

    variable: int
    around: tuple[int, ...]
    best: list[int]


class Elimination:
    """Variables by number, the tables of each, and what has been eliminated; one use."""

    def __init__(self, counts: Sequence[int], tables: Iterable[CostTable]) -> None:
        """``counts``: candidates of each variable."""
        self._counts = counts
        self._tables: list[dict[CostTable, None]] = [{} for _ in counts]
        self._steps: list[_Step] = []
        self._waiting = set(range(len(counts)))
        self._heap: list[tuple[int, int]] = []
        self._rows: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for table in tables:
            self._add(table)

    def run(self) -> list[int]:
        """The candidate of each variable; the first ones where the costs are equal."""
        for variable, count in enumerate(self._counts):
            if count == 1:
                self._decide(variable, 0)
        self._heap = [(self._size(variable), variable) for variable in sorted(self._waiting)]
        heapq.heapify(self._heap)
        while self._waiting:
            size, variable = heapq.heappop(self._heap)
            if variable not in self._waiting or size != self._size(variable):
                continue  # it was pushed again when its size changed
            if size > TABLE_SIZE_MAX:
                heapq.heappush(self._heap, (size, variable))
                self._decide_most_read()
            else:
                self._eliminate(variable)
        taken: dict[int, int] = {}
        for step in reversed(self._steps):
            row = 0
            for other in step.around:
                row = row * self._counts[other] + taken[other]
            taken[step.variable] = step.best[row]
        return [taken[variable] for variable in range(len(self._counts))]

    def _add(self, table: CostTable) -> None:
        for variable in table.scope:
            self._tables[variable][table] = None

    def _remove(self, table: CostTable) -> None:
        for variable in table.scope:
            del self._tables[variable][table]

    def _around(self, variable: int) -> tuple[int, ...]:
        found = {other for table in self._tables[variable] for other in table.scope}
        found.discard(variable)
        return tuple(sorted(found))

    def _size(self, variable: int) -> int:
        return prod(self._counts[other] for other in (variable, *self._around(variable)))

    def _total(self, scope: tuple[int, ...], tables: Iterable[CostTable]) -> list[int]:
        """The sum of tables, over the variables of ``scope``."""
        counts = tuple(self._counts[variable] for variable in scope)
        total = [0] * prod(counts)
        for table in tables:
            places = tuple(map(scope.index, table.scope))
            costs = table.costs
            rows = self._rows_of(counts, places)
            total = [one + costs[row] for one, row in zip(total, rows, strict=True)]
        return total

    def _rows_of(self, counts: tuple[int, ...], places: tuple[int, ...]) -> list[int]:
        """For each row over variables with ``counts``, the row of a table over some of them."""
        key = counts, places
        if key not in self._rows:
            rows: list[int] = []
            for candidates in itertools.product(*map(range, counts)):
                row = 0
                for place in places:
                    row = row * counts[place] + candidates[place]
                rows.append(row)
            self._rows[key] = rows
        return self._rows[key]

    def _decide(self, variable: int, candidate: int) -> None:
        """Give a variable its candidate; its tables go on without it."""
        around = self._around(variable)
        for table in list(self._tables[variable]):
            others = tuple(other for other in table.scope if other != variable)
            moved = self._total((variable, *others), [table])
            size = len(moved) // self._counts[variable]
            self._remove(table)
            self._add(CostTable(others, moved[candidate * size : (candidate + 1) * size]))
        self._done(_Step(variable, (), [candidate]), around)

    def _decide_most_read(self) -> None:
        variable = max(self._waiting, key=lambda one: (len(self._tables[one]), -one))
        least = [0] * self._counts[variable]
        for table in self._tables[variable]:
            others = tuple(other for other in table.scope if other != variable)
            moved = self._total((variable, *others), [table])
            size = len(moved) // len(least)
            least = [
                cost + min(moved[candidate * size : (candidate + 1) * size])
                for candidate, cost in enumerate(least)
            ]
        self._decide(variable, least.index(min(least)))

    def _eliminate(self, variable: int) -> None:
        """Replace the tables of a variable by one over the variables around it."""
        around, tables = self._around(variable), list(self._tables[variable])
        count = self._counts[variable]
        total = self._total((*around, variable), tables)
        rows = [total[start : start + count] for start in range(0, len(total), count)]
        costs = list(map(min, rows))
        best = [row.index(cost) for row, cost in zip(rows, costs, strict=True)]
        for table in tables:
            self._remove(table)
        if around:
            self._add(CostTable(around, costs))
        self._done(_Step(variable, around, best), around)

    def _done(self, step: _Step, around: Iterable[int]) -> None:
        self._steps.append(step)
        self._waiting.discard(step.variable)
        for other in around:
            if other in self._waiting:
                heapq.heappush(self._heap, (self._size(other), other))
