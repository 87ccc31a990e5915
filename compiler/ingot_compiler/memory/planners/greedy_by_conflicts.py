"""Planner: the buffer with the most conflicts first, each above all conflicting buffers already
placed.

In: buffers, pools. Out: a plan. Not done here: filling gaps (``best_fit``, ``hill_climb``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.memory.planners.buffers import MemoryPool, Plan, PlannedBuffer
from ingot_compiler.memory.planners.placing import place_in_order, raise_above


def conflict_order(buffers: Sequence[PlannedBuffer]) -> list[PlannedBuffer]:
    """Number of listed conflicts descending, then size descending, then the later name first."""
    return sorted(
        buffers, key=lambda item: (len(item.conflicts), item.size_bytes, item.name), reverse=True
    )


def plan(buffers: Sequence[PlannedBuffer], pools: Sequence[MemoryPool]) -> Plan:
    """Place by number of listed conflicts, then size, then the later name. Source: USMP
    greedy_by_conflicts.

    Raises:
        UserError: a buffer fits nowhere.
    """
    return place_in_order(conflict_order(buffers), pools, raise_above)
