"""Every planner is safe, deterministic and not worse than it promises, on random conflicts, pools
and alignments."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_compiler.ir.errors import UserError
from ingot_compiler.memory.planners import PLANNERS, plan_with
from ingot_compiler.memory.planners.buffers import (
    LiveBuffer,
    MemoryPool,
    PlannedBuffer,
    buffers_of_lifetimes,
    lower_bound_bytes,
    mutual,
    round_up,
    total_bytes,
)
from ingot_compiler.memory.planners.greedy_by_size import size_order
from ingot_compiler.memory.planners.placing import first_fit, place_in_order

POOLS = (MemoryPool("fast", 4096), MemoryPool("middle", 20_000), MemoryPool("slow"))


@st.composite
def conflict_graphs(draw: st.DrawFn) -> tuple[PlannedBuffer, ...]:
    """Buffers with arbitrary directed conflict lists, mixed alignments and candidate pools."""
    names = [f"b{i}" for i in range(draw(st.integers(0, 12)))]
    return tuple(
        PlannedBuffer(
            name,
            draw(st.integers(0, 5000)),
            draw(st.sampled_from((1, 16, 64, 96))),
            frozenset(draw(st.lists(st.sampled_from(names), max_size=6))),
            tuple(draw(st.permutations(("fast", "middle", "slow")))[: draw(st.integers(1, 3))]),
        )
        for name in names
    )


@st.composite
def lifetimes(draw: st.DrawFn) -> tuple[PlannedBuffer, ...]:
    """Buffers with lifetimes, as a linear program has them."""
    triples = draw(
        st.lists(
            st.tuples(st.integers(0, 30), st.integers(0, 8), st.integers(1, 5000)), max_size=25
        )
    )
    return buffers_of_lifetimes(
        [
            LiveBuffer(str(i), size, 64, first, first + more, ("slow",))
            for i, (first, more, size) in enumerate(triples)
        ]
    )


@pytest.mark.parametrize("planner", [*PLANNERS, "best"])
@settings(max_examples=40)
@given(buffers=conflict_graphs())
@pytest.mark.sweep(60)
def test_plans_are_safe_and_repeatable(planner: str, buffers: tuple[PlannedBuffer, ...]) -> None:
    """A plan passes the checker or the pools are refused; a second run gives the same."""

    def run() -> object:
        try:
            return plan_with(planner, buffers, POOLS)
        except UserError as error:
            return str(error)

    assert run() == run()


@settings(max_examples=60)
@given(buffers=lifetimes())
def test_bounds_hold(buffers: tuple[PlannedBuffer, ...]) -> None:
    """Lower bound <= best <= each planner, and hill climb is never worse than its first
    solution."""
    totals = {
        name: total_bytes(buffers, plan_with(name, buffers, POOLS)) for name in [*PLANNERS, "best"]
    }
    assert lower_bound_bytes(buffers) <= totals["best"] == min(totals.values())
    start = place_in_order(size_order(buffers), POOLS, first_fit)
    assert totals["hill_climb"] <= total_bytes(buffers, start)


@pytest.mark.broad
@settings(max_examples=60)
@given(buffers=conflict_graphs())
def test_lower_bound_is_a_clique(buffers: tuple[PlannedBuffer, ...]) -> None:
    """The bound never exceeds the heaviest set of mutually conflicting buffers (found by trying
    all), each with its padding, nor what a planner reaches."""
    neighbours = {buffer.name: buffer.conflicts for buffer in mutual(buffers)}
    sizes_bytes = {
        buffer.name: round_up(buffer.size_bytes, buffer.alignment_bytes) for buffer in buffers
    }

    def heaviest(candidates: list[str]) -> int:
        if not candidates:
            return 0
        head, rest = candidates[0], candidates[1:]
        return max(
            sizes_bytes[head] + heaviest([name for name in rest if name in neighbours[head]]),
            heaviest(rest),
        )

    bound_bytes = lower_bound_bytes(mutual(buffers))
    assert bound_bytes <= heaviest(sorted(neighbours))
    unlimited = [MemoryPool(pool.name) for pool in POOLS]
    assert bound_bytes <= total_bytes(buffers, plan_with("best", buffers, unlimited))


@pytest.mark.broad
def test_two_thousand_buffers_plan_in_seconds() -> None:
    """A program of 2,000 buffers with short and long lifetimes plans quickly and near the bound."""
    live = [
        LiveBuffer(
            f"v{i}",
            4096 * (1 + (i * 7919) % 61),
            64,
            i,
            i + 1 + (i * 31) % (400 if i % 50 == 0 else 12),
            ("slow",),
        )
        for i in range(2000)
    ]
    buffers = buffers_of_lifetimes(live)
    for planner, limit_s in (
        ("greedy_by_size", 1),
        ("greedy_by_conflicts", 1),
        ("best_fit", 2),
        ("hill_climb", 6),
    ):
        start_s = time.process_time()
        found = plan_with(planner, buffers, POOLS)
        assert time.process_time() - start_s < limit_s
        if planner in ("best_fit", "hill_climb"):
            assert total_bytes(buffers, found) <= 1.15 * lower_bound_bytes(buffers)
