"""Planner: the largest buffer first, each above all conflicting buffers already placed.

In: buffers, pools. Out: a plan. Not done here: filling gaps (``best_fit``, ``hill_climb``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.memory.planners.buffers import MemoryPool, Plan, PlannedBuffer
from ingot_compiler.memory.planners.placing import place_in_order, raise_above


def size_order(buffers: Sequence[PlannedBuffer]) -> tuple[PlannedBuffer, ...]:
    """Size descending, then number of listed conflicts descending, then the later name first."""
    return tuple(
        sorted(
            buffers,
            key=lambda item: (item.size_bytes, len(item.conflicts), item.name),
            reverse=True,
        )
    )


def plan(buffers: Sequence[PlannedBuffer], pools: Sequence[MemoryPool]) -> Plan:
    """Place by size; UserError when a buffer fits nowhere. Source: USMP greedy_by_size."""
    return place_in_order(size_order(buffers), pools, raise_above)
