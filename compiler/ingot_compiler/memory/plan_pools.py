"""The host's workspace in pools of the user: some fast and small, others slow and large.

In: the fused graph, pools in the order of preference. Out: a ``MemoryPlan`` whose buffers of the
host lie in them. Not done here: the algorithms (``planners``), the other devices (``plan_memory``).

A pool is memory of the host like any other: a bundle has it as one more workspace, behind those of
the devices, and every loader gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.message import Text, message, nodes_text
from ingot_compiler.lowering.groups.fused import FusedGraph, launches_of
from ingot_compiler.memory.memory_plan import (
    ALIGNMENT_BYTES,
    BufferPlacement,
    MemoryPlan,
    PoolPlan,
)
from ingot_compiler.memory.plan_memory import plan_memory
from ingot_compiler.memory.planners import plan_with
from ingot_compiler.memory.planners.buffers import (
    LiveBuffer,
    MemoryPool,
    buffers_of_lifetimes,
    lower_bound_bytes,
    mutual,
    round_up,
)
from ingot_runtime.option_ref import OptionRef


def plan_pools(
    fused: FusedGraph, planner: str, pools: Sequence[MemoryPool], device_count: int
) -> MemoryPlan:
    """Place the workspace buffers of every device, those of the host in pools.

    Args:
        fused: its groups expanded.
        planner: a name of the planners' table, or ``best``.
        pools: a buffer lies in the first that has room for it.
        device_count: pools are numbered from there on.

    Raises:
        UserError: the pools are too small. UnsupportedError: sizes are open.
    """
    plan = plan_memory(fused, planner)
    host = plan.of(0)
    _require_fixed(fused, host)
    names = tuple(pool.name for pool in pools)
    live = [
        LiveBuffer(f"b{item.buffer}", _bytes(item), ALIGNMENT_BYTES, item.first, item.last, names)
        for item in host
    ]
    buffers = mutual(buffers_of_lifetimes(live))
    try:
        found = plan_with(planner, buffers, pools)
    except UserError as error:
        where = _writers(fused, str(error.where))
        raise UserError(error.what, where, error.why, error.do) from None
    numbers = {name: number for number, name in enumerate(names, device_count)}
    homes = [
        replace(item, device=numbers[pool], offset_bytes=offset_bytes)
        for item in host
        for pool, offset_bytes in (found[f"b{item.buffer}"],)
    ]
    homes.sort(key=lambda item: (item.device, item.offset_bytes, item.buffer))
    others = [item for item in plan.placements if item.device]
    bound_bytes = lower_bound_bytes(buffers) if len(pools) == 1 else 0
    made = [_pool(name, number, homes, bound_bytes) for name, number in numbers.items()]
    own = [PoolPlan(0, 0, 0, is_fixed=True), *(pool for pool in plan.pools if pool.device)]
    return MemoryPlan((*others, *homes), (*own, *made), planner)


def _pool(name: str, number: int, homes: Sequence[BufferPlacement], bound_bytes: int) -> PoolPlan:
    ends = [
        round_up((item.offset_bytes or 0) + _bytes(item), ALIGNMENT_BYTES)
        for item in homes
        if item.device == number
    ]
    size_bytes = max(ends, default=0)
    return PoolPlan(number, size_bytes, min(bound_bytes, size_bytes), is_fixed=True, name=name)


def _bytes(item: BufferPlacement) -> int:
    assert isinstance(item.size_bytes, int), "sizes are known"
    return max(1, item.size_bytes)


def _require_fixed(fused: FusedGraph, host: Sequence[BufferPlacement]) -> None:
    for item in host:
        if item.offset_bytes is None:
            where = _writers(fused, f"buffer b{item.buffer},")
            why = f"expected a size in bytes, got {item.size_bytes}"
            do = message(
                "give the sizes of inputs by ",
                OptionRef("shape", "NAME=1x3x224x224"),
                " ",
                OptionRef("other-shapes", "refuse"),
                ", or leave ",
                OptionRef("pool"),
                " out",
            )
            raise UnsupportedError("pools hold values of fixed sizes", where, why, do)


def _writers(fused: FusedGraph, where: str) -> Text:
    """The nodes that write or read the buffer that an error of a planner begins with."""
    buffer = int(where.removeprefix("buffer b").partition(",")[0])
    groups = [launch.group for launch in launches_of(fused) if buffer in launch.buffers]
    sources = [group.source for group in groups if group.source]
    return nodes_text(sources[0]) if sources else where
