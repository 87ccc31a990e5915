"""Placing buffers one after the other: the step that all planners share.

In: buffers in the planner's order, pools. Out: a plan, or an error that names the buffer that fits
nowhere. Not done here: the order (each planner's idea).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from ingot_compiler.ir.errors import UserError
from ingot_compiler.memory.planners.buffers import MemoryPool, Plan, PlannedBuffer, round_up

Span = tuple[int, int, int]
"""The span of a buffer: (offset, end, end rounded up to its alignment), in bytes."""

Placed = Sequence[Span]
"""Conflicting buffers already in a pool."""

PlacementRule = Callable[[PlannedBuffer, Placed, int | None], int | None]
"""(buffer, conflicts in one pool, the pool's limit) -> offset in bytes, or None when it does not
fit."""


def raise_above(buffer: PlannedBuffer, placed: Placed, limit_bytes: int | None) -> int | None:
    """The first aligned offset above every conflict: never fills a gap."""
    offset_bytes = max((end for _, _, end in placed), default=0)
    return _within(round_up(offset_bytes, buffer.alignment_bytes), buffer, limit_bytes)


def first_fit(buffer: PlannedBuffer, placed: Placed, limit_bytes: int | None) -> int | None:
    """The lowest aligned offset that overlaps no conflict: fills gaps."""
    offset_bytes = 0
    for start, _, rounded_end in sorted(placed):
        if rounded_end > offset_bytes and offset_bytes + buffer.size_bytes > start:
            offset_bytes = round_up(rounded_end, buffer.alignment_bytes)
    return _within(offset_bytes, buffer, limit_bytes)


def best_fit(buffer: PlannedBuffer, placed: Placed, limit_bytes: int | None) -> int | None:
    """The smallest gap between conflicts that holds the buffer; above all of them when there is
    none."""
    best: tuple[int, int] | None = None
    floor_bytes = 0
    for start, end, _ in sorted(placed):
        offset_bytes = round_up(floor_bytes, buffer.alignment_bytes)
        if offset_bytes + buffer.size_bytes <= start and (
            best is None or start - offset_bytes < best[0]
        ):
            best = start - offset_bytes, offset_bytes
        floor_bytes = max(floor_bytes, end)
    chosen = best[1] if best else round_up(floor_bytes, buffer.alignment_bytes)
    return _within(chosen, buffer, limit_bytes)


def _within(offset_bytes: int, buffer: PlannedBuffer, limit_bytes: int | None) -> int | None:
    return (
        offset_bytes
        if limit_bytes is None or offset_bytes + buffer.size_bytes <= limit_bytes
        else None
    )


def place_in_order(
    order: Sequence[PlannedBuffer],
    pools: Sequence[MemoryPool],
    rule: PlacementRule,
    known: Plan | None = None,
    spans: dict[str, Span] | None = None,
) -> Plan:
    """Give every buffer, in order, the first of its pools where ``rule`` finds room.

    Args:
        order: the buffers.
        pools: the pools of all buffers.
        rule: where a buffer lies beside its conflicts.
        known: what is known to come out for the buffers at the head of the order; it becomes the
            plan.
        spans: where each of these lies, and perhaps others; those that are placed are added.

    Raises:
        UserError: a buffer fits into none of its pools (or has none); advises larger limits.
    """
    limits_bytes = {pool.name: pool.size_limit_bytes for pool in pools}
    plan: Plan = {} if known is None else known
    spans = {} if spans is None else spans
    for buffer in islice(order, len(plan), None):
        placed = _conflicts_by_pool(buffer, plan, spans)
        for pool in buffer.pools:
            offset_bytes = rule(buffer, placed.get(pool, ()), limits_bytes[pool])
            if offset_bytes is not None:
                plan[buffer.name] = pool, offset_bytes
                spans[buffer.name] = _span(buffer, offset_bytes)
                break
        else:
            raise does_not_fit(buffer, pools, placed, rule)
    return plan


def _span(buffer: PlannedBuffer, offset_bytes: int) -> Span:
    end = offset_bytes + buffer.size_bytes
    return offset_bytes, end, round_up(end, buffer.alignment_bytes)


def _conflicts_by_pool(
    buffer: PlannedBuffer, plan: Plan, spans: Mapping[str, Span]
) -> dict[str, list[Span]]:
    """The spans of those that are placed already."""
    placed: dict[str, list[Span]] = {}
    for other in buffer.conflicts & plan.keys():
        placed.setdefault(plan[other][0], []).append(spans[other])
    return placed


def does_not_fit(
    buffer: PlannedBuffer,
    pools: Sequence[MemoryPool],
    placed: Mapping[str, Placed],
    rule: PlacementRule,
) -> UserError:
    """The error for a buffer that no pool holds; ``placed``: what lies in each, as ``rule`` takes it."""
    limits = ", ".join(
        f"{pool.name} ({pool.size_limit_bytes} bytes) lacks {_lacking(buffer, pool, placed, rule)}"
        for pool in pools
        if pool.name in buffer.pools
    )
    return UserError(
        f"the memory pools are too small for buffer {buffer.name}",
        where=f"buffer {buffer.name}, {buffer.size_bytes} bytes",
        why="no room beside the buffers that are live at the same time: "
        + (limits or "it may lie in none"),
        do="raise the pools' size limits, or let the device have a further pool",
    )


def _lacking(
    buffer: PlannedBuffer, pool: MemoryPool, placed: Mapping[str, Placed], rule: PlacementRule
) -> int:
    """How many bytes a pool would have to be larger."""
    offset_bytes = rule(buffer, placed.get(pool.name, ()), None)
    assert offset_bytes is not None, "a pool without a limit holds everything"
    return offset_bytes + buffer.size_bytes - (pool.size_limit_bytes or 0)
