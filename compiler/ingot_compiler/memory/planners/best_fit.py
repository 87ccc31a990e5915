"""Planner: largest first, each into the smallest gap that holds it; several orders, the smallest
plan wins.

In: buffers, pools. Out: a plan. Not done here: search (``hill_climb``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.errors import UserError
from ingot_compiler.memory.planners.buffers import (
    MemoryPool,
    Plan,
    PlannedBuffer,
    lower_bound_bytes,
    total_bytes,
)
from ingot_compiler.memory.planners.greedy_by_size import size_order
from ingot_compiler.memory.planners.placing import best_fit, first_fit, place_in_order


def plan(buffers: Sequence[PlannedBuffer], pools: Sequence[MemoryPool]) -> Plan:
    """Place into gaps, in the orders size, size times conflicts, conflicts; UserError when none of
    them fits."""
    bound_bytes = lower_bound_bytes(buffers)
    orders = (
        size_order(buffers),
        sorted(
            buffers,
            key=lambda item: (item.size_bytes * len(item.conflicts), item.name),
            reverse=True,
        ),
        sorted(
            buffers,
            key=lambda item: (len(item.conflicts), item.size_bytes, item.name),
            reverse=True,
        ),
    )
    best: tuple[int, Plan] | None = None
    failure: UserError | None = None
    for order in orders:
        for rule in (best_fit, first_fit):
            try:
                found = place_in_order(order, pools, rule)
            except UserError as error:
                failure = failure or error
                continue
            size_bytes = total_bytes(buffers, found)
            if best is None or size_bytes < best[0]:
                best = size_bytes, found
            if size_bytes <= bound_bytes:
                return found
    if best is None:
        assert failure is not None
        raise failure
    return best[1]
