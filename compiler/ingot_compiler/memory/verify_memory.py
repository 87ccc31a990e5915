"""Checks that a memory plan is safe, whoever made it; shares no code with the planners.

In: a ``MemoryPlan``, perhaps the fused graph that it is for. Out: nothing, or ``InternalError``
that names the buffer. Not done here: how small a plan is; whether it fits the graph
(``verify_memory_uses``, which is run, too).

Each buffer has one place, aligned, in the pool of its device; buffers that live at the same time
lie apart: by their offsets where sizes are fixed, else by a chain of ``above`` from one to the
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.problem import Part, Problem, require_none
from ingot_compiler.lowering.groups.fused import FusedGraph
from ingot_compiler.memory.memory_plan import (
    ALIGNMENT_BYTES,
    BufferPlacement,
    MemoryPlan,
    PoolPlan,
)
from ingot_compiler.memory.verify_memory_uses import find_use_problems

POOL = -1
"""First part of the path of a pool; that of a buffer is its place in the list."""


def verify_memory(plan: MemoryPlan, fused: FusedGraph | None = None) -> None:
    """Raise InternalError for the first problem."""
    require_none(find_memory_problems(plan, fused), "buffer", "memory plan", "memory")


def find_memory_problems(plan: MemoryPlan, fused: FusedGraph | None = None) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    yield from _pools(plan)
    yield from _places(plan)
    for pool in plan.pools:
        mine = [
            (index, item)
            for index, item in enumerate(plan.placements)
            if item.device == pool.device
        ]
        yield from _apart_fixed(mine) if pool.is_fixed else _apart_above(mine)
    if fused is not None:
        yield from find_use_problems(plan, fused)


def _pools(plan: MemoryPlan) -> Iterator[Problem]:
    devices = [pool.device for pool in plan.pools]
    if devices[:1] != [0] or devices != sorted(set(devices)):
        expected = "the host's first, then others in order, each once"
        yield Problem((POOL, 0), "pools", expected, str(devices), "pools")
    for number, pool in enumerate(plan.pools):
        yield from _pool(Part((POOL, number), f"device {pool.device}"), pool, plan.of(pool.device))


def _pool(part: Part, pool: PoolPlan, placements: Sequence[BufferPlacement]) -> Iterator[Problem]:
    """The size of a pool and its lower bound; ``placements``: of its buffers."""
    ends = [
        -(-(item.offset_bytes + _number(item.size_bytes)) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        for item in placements
        if item.offset_bytes is not None
    ]
    end = max(ends, default=0)
    if pool.is_fixed and pool.size_bytes != end:
        expected = f"{end} bytes, the end of its last buffer"
        yield part.problem(expected, str(pool.size_bytes), "sizes of pools")
    if not 0 <= pool.lower_bound_bytes <= pool.size_bytes:
        got = str(pool.lower_bound_bytes)
        yield part.problem(f"0 to {pool.size_bytes}", got, "lower bounds")


def _places(plan: MemoryPlan) -> Iterator[Problem]:
    fixed = {pool.device: pool.is_fixed for pool in plan.pools}
    seen: dict[int, BufferPlacement] = {}
    for index, item in enumerate(plan.placements):
        part = Part((index,), f"b{item.buffer}")
        if item.device not in fixed:
            got = f"device {item.device}"
            yield part.problem("a device with a pool", got, "buffers lie in pools")
            continue
        if item.buffer in seen:
            yield part.problem("each buffer once", f"{part.name} again", "places of buffers")
        yield from _numbers(part, item)
        yield from _kind_of_place(part, item, fixed[item.device])
        yield from _below(part, item, seen)
        seen[item.buffer] = item


def _numbers(part: Part, item: BufferPlacement) -> Iterator[Problem]:
    """The lifetime, size and offset of a placement, each for itself."""
    if not 0 <= item.first <= item.last:
        expected = "a first step that is not behind the last"
        yield part.problem(expected, f"{item.first} to {item.last}", "lifetimes")
    if isinstance(item.size_bytes, int) and item.size_bytes < 0:
        yield part.problem("at least 0", str(item.size_bytes), "sizes of buffers")
    offset_bytes = item.offset_bytes or 0
    if offset_bytes < 0 or offset_bytes % ALIGNMENT_BYTES:
        yield part.problem(f"a multiple of {ALIGNMENT_BYTES}", str(offset_bytes), "alignment")


def _kind_of_place(part: Part, item: BufferPlacement, fixed: bool) -> Iterator[Problem]:
    """That a pool of fixed size has numbers for places, and another one has none."""
    is_fixed = item.offset_bytes is not None
    if is_fixed != fixed or (fixed and not isinstance(item.size_bytes, int)):
        expected = "an offset and a size that are numbers" if fixed else "a place above others"
        got = f"{item.size_bytes} bytes, offset {item.offset_bytes}"
        yield part.problem(expected, got, "places in a pool that is fixed, or is not")


def _below(
    part: Part, item: BufferPlacement, listed: Mapping[int, BufferPlacement]
) -> Iterator[Problem]:
    """That what a buffer lies above is ``listed`` before it, with a place of its own device."""
    for buffer in item.after:
        other = listed.get(buffer)
        if other is None or other.device != item.device or other.is_data_dependent:
            expected = "buffers of its device that are listed before"
            yield part.problem(expected, f"b{buffer}", "what lies below")


def _apart_fixed(placements: Sequence[tuple[int, BufferPlacement]]) -> Iterator[Problem]:
    """Compare each buffer with those that start below its end."""
    filled = [pair for pair in placements if _number(pair[1].size_bytes) > 0]
    order = sorted(filled, key=lambda pair: pair[1].offset_bytes or 0)
    for position, (index, item) in enumerate(order):
        end = (item.offset_bytes or 0) + _number(item.size_bytes)
        for _, other in order[position + 1 :]:
            if (other.offset_bytes or 0) >= end:
                break
            if _meet(item, other):
                got = f"{item.offset_bytes} to {end}, b{other.buffer} at {other.offset_bytes}"
                part = Part((index,), f"b{item.buffer}")
                expected = "places apart while both live"
                yield part.problem(expected, got, "overlap in space and time")


def _apart_above(placements: Sequence[tuple[int, BufferPlacement]]) -> Iterator[Problem]:
    below: dict[int, set[int]] = {}
    early = [(index, item) for index, item in placements if not item.is_data_dependent]
    for position, (index, item) in enumerate(early):
        beneath = {*item.after, *(each for other in item.after for each in below.get(other, ()))}
        below[item.buffer] = beneath
        part = Part((index,), f"b{item.buffer}")
        for _, other in early[:position]:
            if _meet(item, other) and other.buffer not in beneath:
                after = ", ".join(f"b{each}" for each in item.after) or "nothing"
                expected = f"a place above b{other.buffer}, which lives at the same time"
                got = f"{part.name} above {after}"
                yield part.problem(expected, got, "overlap in space and time")


def _meet(one: BufferPlacement, two: BufferPlacement) -> bool:
    return one.first <= two.last and two.first <= one.last


def _number(size_bytes: Dim) -> int:
    return size_bytes if isinstance(size_bytes, int) else 0
