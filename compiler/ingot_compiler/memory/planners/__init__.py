"""Memory planners: a visible table, the choice by name, and the smallest plan of several.

In: buffers, pools. Out: checked plans. Not done here: lifetimes of values (``plan_memory``), pool
allocation (loader).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ingot_compiler.ir.errors import UserError
from ingot_compiler.memory.planners import best_fit, greedy_by_conflicts, greedy_by_size, hill_climb
from ingot_compiler.memory.planners.buffers import (
    MemoryPool,
    Plan,
    PlannedBuffer,
    lower_bound_bytes,
    mutual,
)
from ingot_compiler.memory.planners.check import check
from ingot_compiler.memory.planners.smallest_plan import smallest_plan

Planner = Callable[[Sequence[PlannedBuffer], Sequence[MemoryPool]], Plan]

PLANNERS: Mapping[str, Planner] = {
    "greedy_by_size": greedy_by_size.plan,
    "greedy_by_conflicts": greedy_by_conflicts.plan,
    "best_fit": best_fit.plan,
    "hill_climb": hill_climb.plan,
}


def plan_with(
    name: str,
    buffers: Sequence[PlannedBuffer],
    pools: Sequence[MemoryPool],
    planners: Mapping[str, Planner] = PLANNERS,
) -> Plan:
    """Run one planner (or ``best``) and check its plan.

    Raises:
        UserError: no such planner, or the pools are too small.
        InternalError: the planner's plan is not safe.
    """
    if name == "best":
        return best(buffers, pools, planners)
    if name not in planners:
        close = difflib.get_close_matches(name, planners, n=1)
        raise UserError(
            f"unknown memory planner {name!r}",
            where="planner",
            why=f"expected one of best, {', '.join(planners)}",
            do=f"did you mean {close[0]!r}?" if close else "choose one of these",
        )
    found = planners[name](mutual(buffers), pools)
    check(buffers, pools, found)
    return found


def best(
    buffers: Sequence[PlannedBuffer],
    pools: Sequence[MemoryPool],
    planners: Mapping[str, Planner] = PLANNERS,
) -> Plan:
    """The smallest of all planners' plans (the earliest planner on a tie), stopping at the lower
    bound.

    Raises:
        UserError: the pools are too small for every planner.
    """
    attempts = (partial(plan_with, name, buffers, pools, planners) for name in planners)
    return smallest_plan(buffers, attempts, lower_bound_bytes(mutual(buffers)))
