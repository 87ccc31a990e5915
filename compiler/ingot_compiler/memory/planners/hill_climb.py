"""Planner: starts from the size order and swaps buffers in the order while that makes the plan
smaller.

In: buffers, pools. Out: a plan, never larger than the first one. Not done here: exact search.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice, repeat

from ingot_compiler.ir.errors import UserError
from ingot_compiler.memory.planners.buffers import (
    MemoryPool,
    Plan,
    PlannedBuffer,
    lower_bound_bytes,
    pool_sizes_bytes,
)
from ingot_compiler.memory.planners.greedy_by_size import size_order
from ingot_compiler.memory.planners.placing import Span, first_fit, place_in_order
from ingot_compiler.memory.planners.smallest_plan import smallest_plan
from ingot_runtime.lazy_dataclass import dataclass

ATTEMPTS_MAX = 500
_CONFLICT_VISITS_MAX = 1_500_000  # bounds the time (about a second), the same on every machine
_SECOND_LEVEL_PERCENT = 75


def plan(buffers: Sequence[PlannedBuffer], pools: Sequence[MemoryPool], seed: int = 0) -> Plan:
    """Search by swaps; deterministic for a ``seed``. Source: USMP hill_climb.

    Raises:
        UserError: no order that was tried fits into the pools.
    """
    order = list(size_order(buffers))
    position = {buffer.name: index for index, buffer in enumerate(order)}
    draw = random.Random(seed)  # noqa: S311 -- chooses swaps, no secret
    climb = _Climb(order, pools, draw, position)
    attempts = repeat(climb.attempt, _attempt_count(order))
    return smallest_plan(buffers, attempts, lower_bound_bytes(buffers))


@dataclass(slots=True)
class _Climb:
    """A walk from order to order: each differs by one swap from the last one that was accepted.

    ``highest``: the buffers at the tops of the pools of the accepted plan. ``placed``: the last
    plan, whose entries are in the order of placement; ``spans``: where its buffers lie;
    ``same_count``: of how many of them the order at hand still begins with.
    """

    order: list[PlannedBuffer]
    pools: Sequence[MemoryPool]
    draw: random.Random
    position: dict[str, int]
    attempt_count: int = 0
    accepted_bytes: int | None = None
    highest: frozenset[str] = frozenset()
    swapped: tuple[int, int] | None = None
    placed: Plan = field(default_factory=dict[str, tuple[str, int]])
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    same_count: int = 0

    def attempt(self) -> Plan:
        """The plan of the order at hand, which then becomes another; UserError when it has no
        room."""
        known = dict(islice(self.placed.items(), self.same_count))
        try:
            found = place_in_order(self.order, self.pools, first_fit, known, self.spans)
        except UserError:
            self.go_on(from_here=False)
            raise
        self.placed, self.same_count = found, len(found)
        tops = pool_sizes_bytes(self.order, found)
        size_bytes = sum(tops.values())
        accepts = _accepts(size_bytes, self.accepted_bytes, self.attempt_count, self.draw)
        if accepts:
            self.highest, self.accepted_bytes = _highest(self.order, found, tops), size_bytes
        self.go_on(from_here=accepts)
        return found

    def go_on(self, *, from_here: bool) -> None:
        """Swap two buffers of this order, or of the one before it."""
        self.attempt_count += 1
        if not from_here and self.swapped and self.accepted_bytes is not None:
            self._swap(*self.swapped)
        self.swapped = _proposal(self.order, self.position, self.highest, self.draw)
        if self.swapped:
            self._swap(*self.swapped)

    def _swap(self, left: int, right: int) -> None:
        order, position = self.order, self.position
        order[left], order[right] = order[right], order[left]
        position[order[left].name], position[order[right].name] = left, right
        self.same_count = min(self.same_count, left, right)


def _attempt_count(order: Sequence[PlannedBuffer]) -> int:
    """The number of attempts that the bound on visits allows; one visits each buffer and its
    conflicts."""
    visits = sum(1 + len(buffer.conflicts) for buffer in order)
    return min(ATTEMPTS_MAX, max(2, _CONFLICT_VISITS_MAX // max(visits, 1)))


def _accepts(size_bytes: int, current_bytes: int | None, attempt: int, draw: random.Random) -> bool:
    """Better always; worse by x percent with a chance of x/2 percent divided by the attempts so
    far."""
    if current_bytes is None or size_bytes < current_bytes:
        return True
    return draw.randrange(100) < 50 * (size_bytes - current_bytes) // max(size_bytes, 1) // max(
        attempt, 1
    )


def _proposal(
    order: Sequence[PlannedBuffer],
    position: Mapping[str, int],
    highest: frozenset[str],
    draw: random.Random,
) -> tuple[int, int] | None:
    """Two positions to swap: neighbours (of neighbours) that precede a buffer at the top of its
    pool."""
    if not highest:
        # Nothing has fitted yet: any other order may.
        return (draw.randrange(len(order)), draw.randrange(len(order))) if order else None
    chosen = draw.choice(sorted(position[name] for name in highest))
    first = _preceding_conflicts(order, position, chosen)
    if not first:
        return None
    left = draw.choice(first)
    near = {other for index in first for other in _preceding_conflicts(order, position, index)}
    second = sorted(near - {left})
    others = [index for index in first if index != left]
    if not second and not others:
        return None
    from_second = bool(second) and (not others or draw.randrange(100) < _SECOND_LEVEL_PERCENT)
    return left, draw.choice(second if from_second else others)


def _highest(order: Sequence[PlannedBuffer], plan: Plan, tops: Mapping[str, int]) -> frozenset[str]:
    """The buffers that end at the top of their pools."""
    return frozenset(
        item.name
        for item in order
        if plan[item.name][1] + item.size_bytes == tops[plan[item.name][0]]
    )


def _preceding_conflicts(
    order: Sequence[PlannedBuffer], position: Mapping[str, int], index: int
) -> list[int]:
    return sorted(
        position[name] for name in order[index].conflicts if position.get(name, index) < index
    )
