"""The solver behind ``--place auto`` and the planner of programs: exact against exhaustive search,
constraints kept, never worse than what it is given."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_compiler.placement import least_cost as solver
from ingot_compiler.placement.least_cost import Costs, forbidden, least_cost, total_cost

WIDE = 1 << 100  # 64 bits hold no sum of it


def problem(seed: int, count: int, scale: int) -> tuple[list[int], list[Costs]]:
    """Variables of one to three labels; tables over one to three of them, several over the same
    ones; some combinations are forbidden, never that of all first labels."""
    choose = random.Random(seed)
    label_counts = [choose.randint(1, 3) for _ in range(count)]
    costs: list[Costs] = []
    for _ in range(2 * count):
        scope = sorted(choose.sample(range(count), min(count, choose.randint(1, 3))))
        shape = [label_counts[variable] for variable in scope]
        table = np.array(
            [choose.randrange(50) * scale for _ in range(int(np.prod(shape)))],
            np.int64 if scale == 1 else object,
        ).reshape(shape)
        if choose.random() < 0.4:
            place = tuple(choose.randrange(size) for size in shape)
            table[place] = forbidden(table) if any(place) else table[place]
        costs.append(Costs(tuple(scope), table))
    return label_counts, costs


def least(label_counts: Sequence[int], costs: Sequence[Costs]) -> int:
    """The least of all assignments."""
    every = itertools.product(*map(range, label_counts))
    return min(total_cost(costs, labels) for labels in every)


@given(st.integers(0, 1 << 30), st.integers(1, 6), st.sampled_from([1, WIDE]))
def test_exact(seed: int, count: int, scale: int) -> None:
    """No assignment costs less, in 64 bits as in Python's integers."""
    label_counts, costs = problem(seed, count, scale)
    found = least_cost(label_counts, costs, ())
    assert total_cost(costs, found) == least(label_counts, costs)


@given(st.integers(0, 1 << 30))
def test_element_types_agree(seed: int) -> None:
    """The same labels, also between equal costs, whatever integers the tables hold."""
    label_counts, costs = problem(seed, 8, 1)
    wide = [Costs(each.variables, each.table.astype(object)) for each in costs]
    for each in wide:
        each.table[each.table == solver.FORBIDDEN] = forbidden(each.table)
    assert least_cost(label_counts, costs, ()) == least_cost(label_counts, wide, ())


def test_no_worse_than_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tables would be too large, constraints hold and the better one of two assignments is
    the least that comes out."""
    monkeypatch.setattr(solver, "COMBINATION_COUNT_MAX", 4)
    won = 0
    for seed in range(40):
        label_counts, costs = problem(seed, 12, 1)
        firsts = [[0] * 12, [count - 1 for count in label_counts]]
        given_cost = min(total_cost(costs, labels) for labels in firsts)
        found = total_cost(costs, least_cost(label_counts, costs, firsts))
        assert found <= given_cost < solver.FORBIDDEN
        won += found < given_cost
    assert won > 10


def test_a_variable_without_costs() -> None:
    """It takes its first label."""
    assert least_cost([3, 2], [Costs((1,), np.array([5, 4]))], ()) == (0, 1)
