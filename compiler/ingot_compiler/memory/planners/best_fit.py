"""Planner: largest first, each into the smallest gap that holds it; several orders, the smallest
plan wins.

In: buffers, pools. Out: a plan. Not done here: search (``hill_climb``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ingot_compiler.memory.planners.buffers import (
    MemoryPool,
    Plan,
    PlannedBuffer,
    lower_bound_bytes,
)
from ingot_compiler.memory.planners.greedy_by_conflicts import conflict_order
from ingot_compiler.memory.planners.greedy_by_size import size_order
from ingot_compiler.memory.planners.placing import best_fit, first_fit, place_in_order
from ingot_compiler.memory.planners.smallest_plan import smallest_plan


def plan(buffers: Sequence[PlannedBuffer], pools: Sequence[MemoryPool]) -> Plan:
    """Place into gaps, in the orders size, size times conflicts, conflicts; UserError when none of
    them fits."""
    orders = (size_order(buffers), _area_order(buffers), conflict_order(buffers))
    attempts = (
        partial(place_in_order, order, pools, rule)
        for order in orders
        for rule in (best_fit, first_fit)
    )
    return smallest_plan(buffers, attempts, lower_bound_bytes(buffers))


def _area_order(buffers: Sequence[PlannedBuffer]) -> list[PlannedBuffer]:
    """Size times number of listed conflicts descending, then the later name first."""
    return sorted(
        buffers, key=lambda item: (item.size_bytes * len(item.conflicts), item.name), reverse=True
    )
