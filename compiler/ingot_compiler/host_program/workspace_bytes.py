"""The memory that ``main`` asks for on each device, where no size is open.

In: a fused graph with its groups expanded, its loop programs, the memory plan. Out: bytes per
device. Not done here: open sizes (``main_sizes`` writes what computes them).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_max
from ingot_compiler.lowering.groups.fused import FusedGraph, Launch, Step, all_steps
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.memory.memory_plan import ALIGNMENT_BYTES, MemoryPlan


def workspace_bytes(
    fused: FusedGraph, programs: Sequence[LoopProgram], plan: MemoryPlan, device_count: int
) -> tuple[int, ...]:
    """The bytes that ``main`` asks for on each device; 0 where sizes are open. Beside the host the
    scratch is part of them."""
    sizes = [0] * device_count
    for pool in plan.pools:
        has_scratch = pool.device and not pool.name
        least: Dim = ALIGNMENT_BYTES if has_scratch else 0  # see `main_sizes`
        scratch = functools.reduce(
            dim_max, scratch_sizes(fused.steps, programs, pool.device) if has_scratch else (), least
        )
        if pool.is_fixed and isinstance(scratch, int):
            sizes[pool.device] = pool.size_bytes + -(-scratch // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return tuple(sizes)


def scratch_sizes(
    steps: Sequence[Step], programs: Sequence[LoopProgram], device: int
) -> dict[Dim, tuple[int, ...]]:
    """The scratch of each kernel that some steps launch on a device, and the nodes that need it."""
    return {
        programs[step.program].scratch_bytes: step.group.source
        for step in all_steps(steps)
        if isinstance(step, Launch) and step.group.device == device
    }
