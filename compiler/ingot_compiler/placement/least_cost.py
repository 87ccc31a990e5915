"""The cheapest assignment of labels to variables: dynamic programming over the graph of costs.

In: how many labels each variable has, tables of costs and constraints over a few variables each,
first assignments. Out: labels. Not done here: what labels and costs mean (``choose_devices``: the
devices of a graph's nodes; ``choose_copies``: those of a program's values).

Variables are eliminated one by one, the one whose neighbours have the fewest combinations first:
a table says for each of them the best label and its cost (bucket elimination). This is exact as
long as no table becomes larger than ``COMBINATION_COUNT_MAX``. Where one would, a variable is
decided: it takes the label that is cheapest by its own tables, and in later rounds the label that
it has, while others are decided. Rounds end when nothing is won. So the result is never worse than
the first assignments. Costs are integers: their sums do not depend on an order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_runtime.lazy_dataclass import dataclass

COMBINATION_COUNT_MAX = 1 << 14
FORBIDDEN = 1 << 60
"""The cost of what a constraint forbids; no sum of other costs reaches it. Twice as much fits into
64 bits."""
_ROUND_COUNT_MAX = 4
_GONE = -1
"""The size of what is no longer there."""

Table = npt.NDArray[Any]
"""A table of ``int64``, or of Python's integers where sums need more bits: see ``forbidden``."""


@dataclass(frozen=True, slots=True)
class Costs:
    """``table[labels of the variables]``; ``variables`` ascend."""

    variables: tuple[int, ...]
    table: Table


def least_cost(
    label_counts: Sequence[int], costs: Sequence[Costs], firsts: Iterable[Sequence[int]]
) -> tuple[int, ...]:
    """The labels with the least sum of costs; of equal ones the lowest labels, from the last
    variable that was eliminated on. ``firsts``: assignments than which the result is no worse,
    looked at only where it may be; one of them is allowed by all constraints."""
    run = _Elimination(label_counts)
    best = run.labels(costs)
    if not run.decided:
        return best
    best_cost, best = min((total_cost(costs, each), tuple(each)) for each in (best, *firsts))
    for _ in range(_ROUND_COUNT_MAX):
        run = _Elimination(label_counts, best, frozenset(run.decided))
        found = run.labels(costs)
        cost = total_cost(costs, found)
        if cost >= best_cost:
            break
        best_cost, best = cost, found
    return best


def total_cost(costs: Iterable[Costs], labels: Sequence[int]) -> int:
    """The sum of all costs of an assignment."""
    return sum(int(each.table[tuple([labels[v] for v in each.variables])]) for each in costs)


def forbidden(table: Table) -> int:
    """What forbids a combination in a table of this element type."""
    return FORBIDDEN**4 if table.dtype == object else FORBIDDEN


def _sum(one: Table, other: Table) -> Table:
    """The sum of two tables, no number beyond what forbids."""
    total: Table = one + other
    return np.minimum(total, forbidden(total), out=total)


def _with_axis_last(table: Table, axis: int) -> Table:
    """Move an axis to the end. ``np.moveaxis`` would take longer than the sums of most tables."""
    last = table.ndim - 1
    if axis == last:
        return table
    return table.transpose(*range(axis), *range(axis + 1, last + 1), axis)


@dataclass(slots=True)
class _Elimination:
    """One pass over all variables. ``current``: the labels of those that are decided, none in the
    first pass; ``before``: what an earlier pass decided, which others are preferred to."""

    label_counts: Sequence[int]
    current: Sequence[int] = ()
    before: frozenset[int] = frozenset()
    decided: set[int] = field(default_factory=set[int])
    _tables: list[dict[tuple[int, ...], Table]] = field(init=False)
    _around: list[set[int]] = field(init=False)
    _sizes: list[int] = field(init=False)

    def labels(self, costs: Iterable[Costs]) -> tuple[int, ...]:
        """Eliminate forwards, choose backwards."""
        self._tables = [{} for _ in self.label_counts]
        self._around = [set() for _ in self.label_counts]
        for each in costs:
            self._put(each.variables, each.table)
        steps: list[Costs] = []
        self._sizes = list(map(self._combinations, range(len(self.label_counts))))
        waiting = [(size, variable) for variable, size in enumerate(self._sizes)]
        heapq.heapify(waiting)
        labels = [0] * len(waiting)
        while waiting:
            size, variable = heapq.heappop(waiting)
            if size != self._sizes[variable]:
                continue  # it is gone, or was pushed again when its size changed
            if size > COMBINATION_COUNT_MAX:
                heapq.heappush(waiting, (size, variable))
                variable = self._most_read(variable)
                changed = self._around[variable]
                labels[variable] = self._decide(variable)
            else:
                changed = self._around[variable]
                steps.append(self._eliminate(variable))
            self._sizes[variable] = _GONE
            for other in changed:
                size = self._combinations(other)
                if size != self._sizes[other]:
                    self._sizes[other] = size
                    heapq.heappush(waiting, (size, other))
        return _chosen(steps, labels)

    def _put(self, variables: tuple[int, ...], table: Table) -> None:
        """Add a table; there is one for all that are over the same variables."""
        known = self._tables[variables[0]].get(variables)
        total = table if known is None else _sum(known, table)
        for variable in variables:
            self._tables[variable][variables] = total
            if known is None:
                around = self._around[variable]
                around.update(variables)
                around.discard(variable)

    def _take(self, variable: int) -> dict[tuple[int, ...], Table]:
        """The tables over a variable, which are no longer there."""
        taken = dict(self._tables[variable])
        for variables in taken:
            for other in variables:
                del self._tables[other][variables]
        for other in self._around[variable]:
            self._around[other].discard(variable)
        return taken

    def _combinations(self, variable: int) -> int:
        counts = self.label_counts
        size = counts[variable]
        for other in self._around[variable]:
            size *= counts[other]
        return size

    def _eliminate(self, variable: int) -> Costs:
        """Replace a variable by what its best label costs; return that label for each combination
        of its neighbours, behind the variable itself."""
        others = sorted(self._around[variable])
        scope, counts = (*others, variable), self.label_counts
        total: Table | None = None
        for variables, table in self._take(variable).items():
            # Its own axis comes last, where finding the least is fastest.
            wide = _with_axis_last(table, variables.index(variable))
            if len(variables) < len(scope):
                wide = wide.reshape([counts[v] if v in variables else 1 for v in scope])
            total = wide if total is None else _sum(total, wide)
        if total is None:
            return Costs((variable,), np.zeros((), np.int64))
        if others:
            self._put(tuple(others), np.asarray(total.min(-1)))
        return Costs((variable, *others), np.asarray(total.argmin(-1)))

    def _most_read(self, variable: int) -> int:
        """The one of a variable and its neighbours that most tables depend on."""
        around = sorted({variable, *self._around[variable]})
        wanted = [v for v in around if v not in self.before] or around
        return min(wanted, key=lambda v: (-len(self._tables[v]), v))

    def _decide(self, variable: int) -> int:
        """Give a variable its label; its tables go on without it."""
        self.decided.add(variable)
        label = self.current[variable] if self.current else self._cheapest(variable)
        for variables, table in self._take(variable).items():
            others = tuple(v for v in variables if v != variable)
            if others:
                self._put(others, np.take(table, label, variables.index(variable)))
        return label

    def _cheapest(self, variable: int) -> int:
        """The label that costs least if each table had its best case."""
        least = np.zeros(self.label_counts[variable], object)
        for variables, table in self._tables[variable].items():
            axis = variables.index(variable)
            least = least + np.moveaxis(table, axis, 0).reshape(len(least), -1).min(-1)
        return int(least.argmin())


def _chosen(steps: Sequence[Costs], labels: list[int]) -> tuple[int, ...]:
    """The labels of what was eliminated, too: the last one first."""
    for step in reversed(steps):
        variable, *others = step.variables
        labels[variable] = int(step.table[tuple([labels[v] for v in others])])
    return tuple(labels)
