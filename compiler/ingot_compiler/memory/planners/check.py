"""The independent checker: a plan is safe, whoever made it.

In: buffers, pools, a plan. Out: nothing, or InternalError. Not done here: planning; shares no code
with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.memory.planners.buffers import MemoryPool, PlannedBuffer


def check(
    buffers: Sequence[PlannedBuffer],
    pools: Sequence[MemoryPool],
    plan: Mapping[str, tuple[str, int]],
) -> None:
    """Refuse a plan with a missing, misaligned, overflowing, misplaced or overlapping buffer.

    Raises:
        InternalError: names the buffers and their places.
    """
    limits_bytes = {pool.name: pool.size_limit_bytes for pool in pools}
    by_name = {buffer.name: buffer for buffer in buffers}
    if set(by_name) != set(plan) or len(by_name) != len(buffers):
        raise _broken("every buffer placed exactly once", str(sorted(set(by_name) ^ set(plan))))
    for buffer in buffers:
        _check_place(buffer, *plan[buffer.name], limits_bytes)
        for name in sorted(buffer.conflicts & set(by_name)):
            _check_pair(buffer, by_name[name], plan)


def _check_place(
    buffer: PlannedBuffer, pool: str, offset_bytes: int, limits_bytes: Mapping[str, int | None]
) -> None:
    if pool not in buffer.pools or pool not in limits_bytes:
        raise _broken(f"{buffer.name} in one of {', '.join(buffer.pools)}", pool)
    if offset_bytes < 0 or offset_bytes % buffer.alignment_bytes:
        expected = f"{buffer.name} at a multiple of {buffer.alignment_bytes} bytes"
        raise _broken(expected, str(offset_bytes))
    limit_bytes, end_bytes = limits_bytes[pool], offset_bytes + buffer.size_bytes
    if limit_bytes is not None and end_bytes > limit_bytes:
        raise _broken(f"{buffer.name} to end within {limit_bytes} bytes", str(end_bytes))


def _check_pair(
    one: PlannedBuffer, two: PlannedBuffer, plan: Mapping[str, tuple[str, int]]
) -> None:
    (pool_one, start_one), (pool_two, start_two) = plan[one.name], plan[two.name]
    empty = one.size_bytes == 0 or two.size_bytes == 0
    if one.name == two.name or pool_one != pool_two or empty:
        return
    if start_one < start_two + two.size_bytes and start_two < start_one + one.size_bytes:
        places = f"{start_one}+{one.size_bytes} and {start_two}+{two.size_bytes} bytes"
        raise _broken(
            f"{one.name} and {two.name}, live at the same time, apart in {pool_one}", places
        )


def _broken(expected: str, got: str) -> InternalError:
    return InternalError(
        "a memory plan is not safe",
        where="plan_memory",
        why=f"expected {expected}, got {got}",
        do="report this with the model; the planner greedy_by_size may avoid it",
    )
