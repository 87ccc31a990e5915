"""Memory planning: where every workspace buffer lies, decided at compile time.

In: the fused graph with its groups expanded, the name of a planner. Out: a ``MemoryPlan`` (stage
8). Not done here: the algorithms (``planners``).

With fixed sizes every offset is an integer. With symbolic sizes a buffer lies above a list of
others ("after"), which ``main`` evaluates with the sizes of the call: every pair of buffers that
are live together is ordered, so the plan is right for all sizes, and tight for those that symbols
are taken to have here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ingot_compiler.ir.dims import Dim, symbols_of
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.groups.fused import (
    FusedGraph,
    LoopStep,
    Step,
    buffers_named,
    parts_of,
    symbols_set,
)
from ingot_compiler.memory.memory_plan import (
    ALIGNMENT_BYTES,
    BufferPlacement,
    MemoryPlan,
    PoolPlan,
)
from ingot_compiler.memory.planned_bytes import PlannedSizes
from ingot_compiler.memory.planners import plan_with
from ingot_compiler.memory.planners.buffers import (
    LiveBuffer,
    MemoryPool,
    PlannedBuffer,
    buffers_of_lifetimes,
    lower_bound_bytes,
    mutual,
    round_up,
)

Lifetime = tuple[int, int]
"""(first, last) step that names a buffer."""


def plan_memory(
    fused: FusedGraph, planner: str = "best", *, tensors_inside: bool = False
) -> MemoryPlan:
    """Place the workspace buffers of every device, each device for itself. ``tensors_inside``: the
    inputs and outputs of the model, too, of which inputs are there before the first step and
    outputs until after the last."""
    lifetimes = _lifetimes(fused, tensors_inside=tensors_inside)
    devices = sorted({0, *(fused.buffers[buffer].device for buffer in lifetimes)})
    plans = [_plan_device(fused, device, lifetimes, planner) for device in devices]
    placements = tuple(placement for placed, _ in plans for placement in placed)
    return MemoryPlan(placements, tuple(pool for _, pool in plans), planner)


def _plan_device(
    fused: FusedGraph, device: int, lifetimes: Mapping[int, Lifetime], planner: str
) -> tuple[tuple[BufferPlacement, ...], PoolPlan]:
    planned = PlannedSizes(fused)
    sizes = {
        buffer: planned.buffer_bytes(buffer)
        for buffer in sorted(lifetimes)
        if fused.buffers[buffer].device == device
    }
    computed = symbols_set(fused.steps)
    known = {
        buffer: size for buffer, size in sizes.items() if computed.isdisjoint(symbols_of(size))
    }
    pool = MemoryPool(f"device {device}")
    buffers = _conflicting(known, lifetimes, pool)
    plan = plan_with(planner, buffers, (pool,))
    offsets = {buffer: plan[f"b{buffer}"][1] for buffer in known}
    fixed = all(isinstance(size, int) for size in sizes.values())
    after = {} if fixed else _order(buffers, offsets)
    placements = tuple(
        BufferPlacement(
            buffer,
            sizes[buffer],
            *lifetimes[buffer],
            offsets[buffer] if fixed else None,
            after.get(buffer, ()),
            buffer not in known,
            device,
        )
        for buffer in sorted(sizes, key=lambda item: (offsets.get(item, 0), item))
    )
    ends = [round_up(offsets[b] + typical(sizes[b]), ALIGNMENT_BYTES) for b in offsets]
    size_bytes = max(ends, default=0)
    bound_bytes = min(lower_bound_bytes(buffers), size_bytes)
    return placements, PoolPlan(device, size_bytes, bound_bytes, fixed)


def _conflicting(
    sizes: Mapping[int, Dim], lifetimes: Mapping[int, Lifetime], pool: MemoryPool
) -> tuple[PlannedBuffer, ...]:
    """The buffers of a pool as planners see them; of symbols the sizes that are typical."""
    live = [
        LiveBuffer(
            f"b{buffer}", max(1, typical(size)), ALIGNMENT_BYTES, *lifetimes[buffer], (pool.name,)
        )
        for buffer, size in sizes.items()
    ]
    return mutual(buffers_of_lifetimes(live))


def _lifetimes(fused: FusedGraph, *, tensors_inside: bool) -> dict[int, Lifetime]:
    """The lifetimes of workspace buffers, and perhaps of inputs and outputs."""
    kinds = ("workspace", "input", "output") if tensors_inside else ("workspace",)
    found: dict[int, Lifetime] = {}
    loops: list[Lifetime] = []

    def name(buffers: Iterable[int], index: int) -> None:
        for buffer in buffers:
            if fused.buffers[buffer].kind in kinds:
                found[buffer] = found.get(buffer, (index, index))[0], index

    def visit(steps: Sequence[Step], index: int) -> int:
        for step in steps:
            start, index = index, index + 1
            name(buffers_named(step), start)
            for part in parts_of(step):
                index = visit(part, index)
            if isinstance(step, LoopStep):
                name(step.held, index)
                loops.append((start, index))
            index += 1 if parts_of(step) else 0  # the end of control flow is a step too
        return index

    end = visit(fused.steps, 0)
    for loop in loops:
        _outlive(found, *loop)
    if tensors_inside:
        for buffer, spec in enumerate(fused.buffers):
            first, last = found.get(buffer, (0, end))
            if spec.kind == "input":
                found[buffer] = 0, last
            elif spec.kind == "output":
                found[buffer] = first, end
    return found


def _outlive(lifetimes: dict[int, Lifetime], start: int, end: int) -> None:
    """What enters or leaves a loop, or keeps its contents, must not be overwritten by another
    iteration: it lives as long as the loop."""
    for buffer, (first, last) in lifetimes.items():
        if first <= end and last >= start and not start < first <= last < end:
            lifetimes[buffer] = min(first, start), max(last, end)


def _order(
    buffers: tuple[PlannedBuffer, ...], offsets: dict[int, int]
) -> dict[int, tuple[int, ...]]:
    """Buffer -> those it must lie above; a pair is left out when a third buffer between them
    implies it."""
    conflicts = {int(item.name[1:]): {int(name[1:]) for name in item.conflicts} for item in buffers}
    order = sorted(offsets, key=lambda buffer: (offsets[buffer], buffer))
    rank = {buffer: position for position, buffer in enumerate(order)}
    below = {
        buffer: {other for other in conflicts[buffer] if rank[other] < rank[buffer]}
        for buffer in order
    }
    result: dict[int, tuple[int, ...]] = {}
    for buffer in order:
        implied = {other for between in below[buffer] for other in below[between]}
        result[buffer] = tuple(sorted(below[buffer] - implied))
    return result
