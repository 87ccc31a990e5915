"""What a memory planner sees: sizes, alignments, conflicts and the pools a buffer may live in.

In: buffers with lifetimes, or with conflicts given. Out: ``PlannedBuffer``, ``MemoryPool``, and the
bound that no plan can beat. Not done here: placement of buffers (the planners), liveness of values
(``plan_memory``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd

from ingot_runtime.lazy_dataclass import dataclass

Plan = dict[str, tuple[str, int]]
"""buffer name -> (pool name, offset in bytes)."""

_CLIQUE_STARTS = 64  # greedy cliques tried where the conflicts are not those of intervals


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """One buffer of ``size_bytes``, placed at a multiple of ``alignment_bytes`` in one of ``pools``
    (in that order).

    ``conflicts`` are names of buffers that are live at the same time. A planner asks the buffer
    that it places, not those already placed, so that lists must name each other: ``plan_with`` and
    ``best`` see to it.
    """

    name: str
    size_bytes: int
    alignment_bytes: int
    conflicts: frozenset[str]
    pools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryPool:
    """A block of memory of one device; ``size_limit_bytes`` is None when it may grow."""

    name: str
    size_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """A buffer that is written at step ``first`` and read for the last time at step ``last`` (both
    inclusive)."""

    name: str
    size_bytes: int
    alignment_bytes: int
    first: int
    last: int
    pools: tuple[str, ...]


def buffers_of_lifetimes(live: Sequence[LiveBuffer]) -> tuple[PlannedBuffer, ...]:
    """Turn lifetimes into conflicts: two buffers conflict when their steps overlap."""
    conflicts: dict[str, set[str]] = {buffer.name: set() for buffer in live}
    active: list[LiveBuffer] = []
    for buffer in sorted(live, key=lambda item: (item.first, item.name)):
        active = [other for other in active if other.last >= buffer.first]
        for other in active:
            conflicts[buffer.name].add(other.name)
            conflicts[other.name].add(buffer.name)
        active.append(buffer)
    names = {name: frozenset(others) for name, others in conflicts.items()}
    return tuple(
        PlannedBuffer(
            item.name, item.size_bytes, item.alignment_bytes, names[item.name], item.pools
        )
        for item in live
    )


def mutual(buffers: Sequence[PlannedBuffer]) -> tuple[PlannedBuffer, ...]:
    """Return the buffers with conflicts that name each other, without themselves and without names
    that are not planned."""
    table: dict[str, set[str]] = {buffer.name: set() for buffer in buffers}
    for buffer in buffers:
        for other in buffer.conflicts & table.keys() - {buffer.name}:
            table[buffer.name].add(other)
            table[other].add(buffer.name)
    return tuple(replace(buffer, conflicts=frozenset(table[buffer.name])) for buffer in buffers)


def round_up(offset_bytes: int, alignment_bytes: int) -> int:
    """The next multiple of ``alignment_bytes`` (>= 1)."""
    return -(-offset_bytes // alignment_bytes) * alignment_bytes


def pool_sizes_bytes(
    buffers: Sequence[PlannedBuffer], plan: Mapping[str, tuple[str, int]]
) -> dict[str, int]:
    """Pool name -> the highest end of a buffer in it."""
    sizes: dict[str, int] = {}
    for buffer in buffers:
        pool, offset_bytes = plan[buffer.name]
        end_bytes = offset_bytes + buffer.size_bytes
        if end_bytes >= sizes.get(pool, 0):
            sizes[pool] = end_bytes
    return sizes


def total_bytes(buffers: Sequence[PlannedBuffer], plan: Mapping[str, tuple[str, int]]) -> int:
    """The sum of all pools' sizes: what the planners make small."""
    return sum(pool_sizes_bytes(buffers, plan).values())


def lower_bound_bytes(buffers: Sequence[PlannedBuffer]) -> int:
    """Bytes that are live at once at the worst moment, with the padding between them: no plan is
    smaller.

    Exact for conflicts that come from lifetimes; otherwise the heaviest of some cliques, still a
    bound. A conflict that only one of the two lists does not count, because an order of placement
    exists that ignores it.
    """
    sizes_bytes = {buffer.name: buffer.size_bytes for buffer in buffers}
    listed = {buffer.name: buffer.conflicts - {buffer.name} for buffer in buffers}
    neighbours = {
        name: {other for other in others if name in listed.get(other, ())}
        for name, others in listed.items()
    }
    cliques = _interval_cliques(neighbours) or _heavy_cliques(neighbours, sizes_bytes)
    by_name = {buffer.name: buffer for buffer in buffers}
    return max(
        (_size_together_bytes([by_name[name] for name in clique]) for clique in cliques), default=0
    )


def _size_together_bytes(live: Sequence[PlannedBuffer]) -> int:
    """The least that buffers need which are live at once: behind each lies padding up to the next
    one, but for the last one of each pool."""
    alignment_bytes = gcd(*(buffer.alignment_bytes for buffer in live))
    padding_bytes = sorted(-buffer.size_bytes % alignment_bytes for buffer in live)
    pool_count = len({pool for buffer in live for pool in buffer.pools})
    padded_bytes = padding_bytes[: max(0, len(live) - pool_count)]
    return sum(buffer.size_bytes for buffer in live) + sum(padded_bytes)


def _heavy_cliques(
    neighbours: Mapping[str, set[str]], sizes_bytes: Mapping[str, int]
) -> list[set[str]]:
    """One clique around each of the largest buffers."""
    largest = sorted(neighbours, key=lambda name: (-sizes_bytes[name], name))[:_CLIQUE_STARTS]
    return [_greedy_clique(name, neighbours, sizes_bytes) for name in largest]


def _interval_cliques(neighbours: Mapping[str, set[str]]) -> list[set[str]] | None:
    """All maximal cliques of a chordal graph (interval graphs are chordal), None for any other
    graph.

    Maximum cardinality search (Tarjan and Yannakakis 1984): the graph is chordal exactly when the
    earlier neighbours of every vertex are, but for the latest of them, neighbours of that latest
    one.
    """
    order: dict[str, int] = {}
    buckets: list[dict[str, None]] = [dict.fromkeys(sorted(neighbours))]
    weight = dict.fromkeys(neighbours, 0)
    cliques: list[set[str]] = []
    while len(order) < len(neighbours):
        while not buckets[-1]:
            buckets.pop()
        name, _ = buckets[-1].popitem()
        earlier = {other for other in neighbours[name] if other in order}
        if earlier:
            latest = max(earlier, key=order.__getitem__)
            if not earlier - {latest} <= neighbours[latest]:
                return None
        cliques.append(earlier | {name})
        order[name] = len(order)
        for other in sorted(neighbours[name] - earlier):
            del buckets[weight[other]][other]
            weight[other] += 1
            if weight[other] == len(buckets):
                buckets.append({})
            buckets[weight[other]][other] = None
    return cliques


def _greedy_clique(
    name: str, neighbours: Mapping[str, set[str]], sizes_bytes: Mapping[str, int]
) -> set[str]:
    clique = {name}
    candidates = set(neighbours[name])
    while candidates:
        heaviest = max(candidates, key=lambda other: (sizes_bytes[other], other))
        clique.add(heaviest)
        candidates &= neighbours[heaviest]
    return clique
