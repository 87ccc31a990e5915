"""Memory planners against the reference numbers of unified static memory planning (seed 8.4, rows
84-89)."""

from itertools import islice

import pytest

from ingot_compiler.ir.errors import InternalError, UserError
from ingot_compiler.memory.planners import PLANNERS, best, plan_with
from ingot_compiler.memory.planners.buffers import (
    LiveBuffer,
    MemoryPool,
    Plan,
    PlannedBuffer,
    buffers_of_lifetimes,
    lower_bound_bytes,
    pool_sizes_bytes,
    total_bytes,
)
from ingot_compiler.memory.planners.check import check
from ingot_compiler.memory.planners.placing import Span, first_fit, place_in_order

UNBOUNDED = (MemoryPool("workspace"),)
SEED_PLANNERS = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")
Trace = tuple[tuple[int, int, int], ...]


def make(
    sizes_bytes: dict[str, int],
    conflicts: dict[str, str],
    pools: tuple[str, ...] = ("workspace",),
    alignment_bytes: int = 1,
) -> tuple[PlannedBuffer, ...]:
    """Buffers from sizes and space-separated conflict lists, exactly as directed as they are
    given."""
    return tuple(
        PlannedBuffer(
            name, size, alignment_bytes, frozenset(conflicts.get(name, "").split()), pools
        )
        for name, size in sizes_bytes.items()
    )


def from_trace(trace: Trace, alignment_bytes: int = 1) -> tuple[PlannedBuffer, ...]:
    """Buffers of (first step, last step, bytes) triples."""
    return buffers_of_lifetimes(
        [
            LiveBuffer(str(i), size, alignment_bytes, first, last, ("workspace",))
            for i, (first, last, size) in enumerate(trace)
        ]
    )


CHAIN = make(
    {"a": 10, "b": 20, "c": 100, "d": 40, "e": 50, "f": 50},
    {"a": "b", "b": "a c", "c": "b d", "d": "c e", "e": "d f", "f": "e"},
)
FAN_OUT = make(
    {"a": 10, "b": 20, "c": 100, "d": 40, "e": 50, "f": 60, "g": 70},
    {
        "a": "b c",
        "b": "a c e",
        "c": "e a b d",
        "d": "b f c e",
        "e": "c f b d",
        "f": "d e f",
        "g": "f",
    },
)
SMALL_NET = make(
    {"padded_7": 314646, "conv_7": 256, "tensor_2": 200704, "sid_9": 301056, "sid_8": 802816},
    {
        "padded_7": "sid_9 sid_8 conv_7",
        "tensor_2": "sid_8",
        "sid_9": "padded_7",
        "sid_8": "padded_7 conv_7 tensor_2",
        "conv_7": "sid_8 padded_7",
    },
    ("fast", "slow"),
    16,
)
RESIDUAL_BLOCK = make(
    {
        "sid_2": 720000,
        "sid_6": 5760000,
        "sid_7": 720000,
        "sid_8": 720000,
        "padded": 720000,
        "padded_1": 758912,
        "padded_2": 720000,
        "padded_3": 720000,
        "conv": 256,
        "conv_1": 256,
        "conv_2": 256,
        "conv_3": 256,
    },
    {
        "sid_7": "padded_1 sid_2 conv_1 padded_2",
        "conv_3": "padded_3 sid_6",
        "sid_6": "conv_2 padded_2 sid_2 padded_3 conv_3",
        "conv": "sid_8 sid_2 padded",
        "padded_3": "sid_6 sid_2 conv_3",
        "conv_2": "padded_2 sid_2 sid_6",
        "padded_1": "sid_8 sid_2 sid_7 conv_1",
        "conv_1": "sid_7 padded_1 sid_2",
        "padded": "sid_2 sid_8 conv",
        "sid_8": "padded sid_2 conv padded_1",
        "sid_2": "padded sid_8 conv padded_1 sid_7 conv_1 padded_2 conv_2 sid_6 padded_3",
        "padded_2": "sid_7 sid_2 conv_2 sid_6",
    },
    alignment_bytes=16,
)
TRACES: dict[str, Trace] = {
    "alloc_max": ((0, 159, 2048), (0, 13, 7904), (4, 35, 16), (12, 17, 32768), (16, 21, 32768)),
    "simple": (
        (0, 23, 131072), (4, 5, 65568), (4, 9, 8192), (8, 30, 15360), (10, 11, 65568),
        (10, 15, 4096), (16, 17, 65552), (16, 21, 2048), (22, 23, 32784), (22, 27, 1024),
    ),
    "five": ((4, 5, 95), (1, 4, 52135), (3, 4, 12136), (3, 5, 62099), (4, 5, 50458)),
    # A recurrent network, unrolled: gates, cell states and outputs of 16 steps, all inputs live
    # from the start.
    "recurrent": (
        *((4 * t, 4 * t + 1, 2048) for t in range(16)),
        *((1, 64 + 20 * (16 - t), 4096) for t in range(16)),
        *((70 + 20 * t, 81 + 20 * t, 8192) for t in range(16)),
        *((72 + 20 * t, 95 + 20 * t, 2048) for t in range(16)),
        *((86 + 20 * t, 420, 2048) for t in range(16)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("planner", SEED_PLANNERS)
def test_equal_buffers_go_by_name(planner: str) -> None:
    """Three equal buffers in conflict: the later name lies lower, whatever order they come in."""
    buffers = make({"a": 10, "b": 10, "c": 10}, {"a": "b c", "b": "a c", "c": "a b"})
    for _ in range(3):
        assert PLANNERS[planner](buffers, UNBOUNDED) == {
            "a": ("workspace", 20),
            "b": ("workspace", 10),
            "c": ("workspace", 0),
        }
        buffers = buffers[1:] + buffers[:1]


@pytest.mark.parametrize("planner", SEED_PLANNERS)
def test_chain(planner: str) -> None:
    """A chain needs the two largest neighbours: 140 bytes."""
    assert total_bytes(CHAIN, plan_with(planner, CHAIN, UNBOUNDED)) == 140


@pytest.mark.parametrize(
    ("planner", "size_bytes"),
    [("greedy_by_size", 190), ("greedy_by_conflicts", 320), ("hill_climb", 190)],
)
def test_fan_out(planner: str, size_bytes: int) -> None:
    """A fan-out with conflict lists that do not all name each other, one of them naming itself."""
    assert total_bytes(FAN_OUT, PLANNERS[planner](FAN_OUT, UNBOUNDED)) == size_bytes


@pytest.mark.parametrize("planner", PLANNERS)
def test_one_sided_conflicts_are_kept_apart(planner: str) -> None:
    """Chosen by name, a planner keeps two buffers apart even when only one of them lists the
    other."""
    found = plan_with(planner, FAN_OUT, UNBOUNDED)
    (_, start_f), (_, start_g) = found["f"], found["g"]
    assert start_f + 60 <= start_g or start_g + 70 <= start_f


@pytest.mark.parametrize(
    ("planner", "slow_bytes"),
    [("greedy_by_size", 1418528), ("greedy_by_conflicts", 1418528), ("hill_climb", 1117462)],
)
def test_bounded_fast_pool(planner: str, slow_bytes: int) -> None:
    """A buffer leaves a bounded fast pool for the next candidate when it does not fit."""
    pools = (MemoryPool("fast", 200704), MemoryPool("slow"))
    found = plan_with(planner, SMALL_NET, pools)
    assert pool_sizes_bytes(SMALL_NET, found) == {"fast": 200704, "slow": slow_bytes}


@pytest.mark.parametrize(
    ("planner", "size_bytes"),
    [("greedy_by_size", 7920256), ("greedy_by_conflicts", 7200256), ("hill_climb", 7200256)],
)
def test_residual_block(planner: str, size_bytes: int) -> None:
    """A residual block of a quantized network."""
    assert total_bytes(RESIDUAL_BLOCK, plan_with(planner, RESIDUAL_BLOCK, UNBOUNDED)) == size_bytes
    assert lower_bound_bytes(RESIDUAL_BLOCK) == 7200256


@pytest.mark.parametrize("planner", PLANNERS)
def test_too_small_a_pool_is_refused(planner: str) -> None:
    """Conflicts in a cycle do not fit into a pool for one: the error names a buffer and advises."""
    buffers = make({"a": 10, "b": 10, "c": 10}, {"a": "b", "b": "c", "c": "a"})
    with pytest.raises(UserError, match="too small") as caught:
        plan_with(planner, buffers, (MemoryPool("workspace", 10),))
    assert "10 bytes" in caught.value.why
    assert "raise" in caught.value.do


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_buffer_without_a_pool_is_refused(planner: str) -> None:
    """A buffer with no candidate pool is an error, not a silent default."""
    with pytest.raises(UserError, match="buffer a"):
        plan_with(planner, make({"a": 10}, {}, ()), UNBOUNDED)


@pytest.mark.parametrize("planner", ["hill_climb", "best_fit", "best"])
@pytest.mark.parametrize("trace", TRACES)
def test_traces_reach_the_lower_bound(planner: str, trace: str) -> None:
    """On recorded lifetimes the searching planners come within 5 % of the bytes live at the worst
    moment."""
    buffers = from_trace(TRACES[trace])
    assert total_bytes(buffers, plan_with(planner, buffers, UNBOUNDED)) <= 1.05 * lower_bound_bytes(
        buffers
    )


@pytest.mark.parametrize(
    "buffers", [CHAIN, FAN_OUT, from_trace(((0, 2, 64), (1, 3, 100), (2, 5, 30), (4, 6, 90)))]
)
def test_places_that_are_known_are_not_looked_for_again(buffers: tuple[PlannedBuffer, ...]) -> None:
    """Any head of a plan leads to the same plan, and its places are taken as they are."""
    spans: dict[str, Span] = {}
    whole = place_in_order(buffers, UNBOUNDED, first_fit, {}, spans)
    for count in range(len(buffers) + 1):
        known = dict(islice(whole.items(), count))
        assert place_in_order(buffers, UNBOUNDED, first_fit, known, spans) == whole
    # What is known counts, right or not.
    moved = {buffers[0].name: ("workspace", 7)}
    spans[buffers[0].name] = (7, 7 + buffers[0].size_bytes, 7 + buffers[0].size_bytes)
    found = place_in_order(buffers, UNBOUNDED, first_fit, moved, spans)
    assert found[buffers[0].name] == ("workspace", 7)


def test_lower_bound_is_the_peak_of_live_bytes() -> None:
    """For lifetimes the bound equals the largest sum over all steps."""
    for trace in TRACES.values():
        steps = range(max(last for _, last, _ in trace) + 1)
        peak = max(
            sum(size for first, last, size in trace if first <= step <= last) for step in steps
        )
        assert lower_bound_bytes(from_trace(trace)) == peak


def test_best_is_never_larger_than_any_planner() -> None:
    """``best`` takes the smallest of all plans."""
    for buffers in (CHAIN, FAN_OUT, RESIDUAL_BLOCK):
        smallest = min(
            total_bytes(buffers, plan_with(name, buffers, UNBOUNDED)) for name in PLANNERS
        )
        assert total_bytes(buffers, best(buffers, UNBOUNDED)) == smallest


def test_planner_from_outside_is_called_only_when_chosen() -> None:
    """A planner added to the table runs when it is named; its plan is checked like any other."""
    calls: list[str] = []

    def stacked(buffers: object, pools: object) -> Plan:
        calls.append("stacked")
        return {"a": ("workspace", 0), "b": ("workspace", 10)}

    buffers = make({"a": 10, "b": 10}, {"a": "b"})
    table = {**PLANNERS, "stacked": stacked}
    plan_with("greedy_by_size", buffers, UNBOUNDED, table)
    assert calls == []
    assert plan_with("stacked", buffers, UNBOUNDED, table) == {
        "a": ("workspace", 0),
        "b": ("workspace", 10),
    }
    assert calls == ["stacked"]


def test_unknown_planner_is_refused_with_a_suggestion() -> None:
    """A misspelled planner names the nearest one."""
    with pytest.raises(UserError) as caught:
        plan_with("hill_clim", CHAIN, UNBOUNDED)
    assert "hill_climb" in caught.value.do


@pytest.mark.parametrize(
    "plan",
    [
        {"a": ("workspace", 0), "b": ("workspace", 8)},  # overlap
        {"a": ("workspace", 0), "b": ("workspace", 9)},  # overlap by one byte
        {"a": ("workspace", 0), "b": ("workspace", 17)},  # past the limit
        {"a": ("workspace", 0)},  # missing
        {"a": ("workspace", 0), "b": ("other", 0)},  # not a candidate
        {"a": ("workspace", 0), "b": ("workspace", -10)},  # negative
    ],
)
def test_checker_refuses_unsafe_plans(plan: Plan) -> None:
    """Overlap, overflow, absence, a foreign pool: each is an internal error."""
    buffers = make({"a": 10, "b": 10}, {"b": "a"})
    with pytest.raises(InternalError):
        check(buffers, (MemoryPool("workspace", 26),), plan)


def test_checker_refuses_misalignment() -> None:
    """An offset must be a multiple of the buffer's alignment."""
    with pytest.raises(InternalError, match="not safe"):
        check(make({"a": 10}, {}, alignment_bytes=64), UNBOUNDED, {"a": ("workspace", 32)})
