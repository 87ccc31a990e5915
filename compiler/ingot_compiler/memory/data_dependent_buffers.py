"""Before which step each buffer gets its block whose size is only known while ``main`` runs.

In: a fused graph with its groups expanded, its memory plan. Out: placements by step, counted as
``plan_memory`` counts them. Not done here: buffers whose room steps make (``Grow``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.lowering.groups.fused import (
    FusedGraph,
    Grow,
    IfStep,
    Step,
    all_steps,
    parts_of,
    step_count,
)
from ingot_compiler.memory.memory_plan import BufferPlacement, MemoryPlan


def data_dependent_buffers(fused: FusedGraph, plan: MemoryPlan) -> dict[int, list[BufferPlacement]]:
    """Step -> the buffers that it is the first to name; what both ways of a choice write, and
    others read behind it, belongs to the choice."""
    grown = {
        item
        for step in all_steps(fused.steps)
        if isinstance(step, Grow)
        for item in (step.buffer, step.spare)
    }
    choices = list(_choices(fused.steps, 0))
    found: dict[int, list[BufferPlacement]] = {}
    for placement in plan.placements:
        if placement.is_data_dependent and placement.buffer not in grown:
            around = [
                first for first, end in choices if first < placement.first <= end < placement.last
            ]
            found.setdefault(min(around, default=placement.first), []).append(placement)
    return found


def _choices(steps: Sequence[Step], index: int) -> Iterator[tuple[int, int]]:
    """(number of the step, number of its end) of every choice."""
    for step in steps:
        inside, start = index + 1, index
        for part in parts_of(step):
            yield from _choices(part, inside)
            inside += step_count(part)
        index = inside + 1 if parts_of(step) else inside
        if isinstance(step, IfStep):
            yield start, inside
