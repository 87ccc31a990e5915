"""Planner: the buffer with the most conflicts first, each above all conflicting buffers already
placed.

In: buffers, pools. Out: a plan. Not done here: filling gaps (``best_fit``, ``hill_climb``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.memory.planners.buffers import MemoryPool, Plan, PlannedBuffer
from ingot_compiler.memory.planners.placing import place_in_order, raise_above


def plan(buffers: Sequence[PlannedBuffer], pools: Sequence[MemoryPool]) -> Plan:
    """Place by number of listed conflicts, then size, then the later name. Source: USMP
    greedy_by_conflicts.

    Raises:
        UserError: a buffer fits nowhere.
    """
    order = sorted(
        buffers, key=lambda item: (len(item.conflicts), item.size_bytes, item.name), reverse=True
    )
    return place_in_order(order, pools, raise_above)
