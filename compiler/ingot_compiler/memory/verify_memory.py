"""Checks that a memory plan is safe, whoever made it; shares no code with the planners.

In: a ``MemoryPlan``, perhaps the fused graph that it is for. Out: nothing, or ``InternalError``
that names the buffer. Not done here: how small a plan is.

Each buffer has one place, aligned, in the pool of its device; buffers that live at the same time
lie apart: by their offsets where sizes are fixed, else by a chain of ``above`` from one to the
other. With the graph: every workspace buffer that a step names is planned, with its size, for every
step that names it, and from one iteration of a loop to the next if it outlives one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ingot_compiler.ir.dims import Dim, symbols_of
from ingot_compiler.ir.problem import Problem, require_none
from ingot_compiler.lowering.fused import (
    Copy,
    FusedGraph,
    Group,
    Grow,
    Launch,
    LoopStep,
    Step,
    SymbolRead,
    buffers_of,
    parts_of,
    symbols_set,
)
from ingot_compiler.memory.memory_plan import (
    ALIGNMENT_BYTES,
    BufferPlacement,
    MemoryPlan,
    buffer_bytes,
)

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
        yield from _fits(plan, fused)


def _pools(plan: MemoryPlan) -> Iterator[Problem]:
    devices = [pool.device for pool in plan.pools]
    if devices[:1] != [0] or devices != sorted(set(devices)):
        yield Problem(
            (POOL, 0),
            "pools",
            "the host's first, then others in order, each once",
            str(devices),
            "pools",
        )
    for number, pool in enumerate(plan.pools):
        mine = plan.of(pool.device)
        ends = [
            -(-(item.offset_bytes + _number(item.size_bytes)) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            for item in mine
            if item.offset_bytes is not None
        ]
        if pool.is_fixed and pool.size_bytes != max(ends, default=0):
            expected = f"{max(ends, default=0)} bytes, the end of its last buffer"
            yield Problem(
                (POOL, number),
                f"device {pool.device}",
                expected,
                str(pool.size_bytes),
                "sizes of pools",
            )
        if not 0 <= pool.lower_bound_bytes <= pool.size_bytes:
            expected = f"0 to {pool.size_bytes}"
            yield Problem(
                (POOL, number),
                f"device {pool.device}",
                expected,
                str(pool.lower_bound_bytes),
                "lower bounds",
            )


def _places(plan: MemoryPlan) -> Iterator[Problem]:
    fixed = {pool.device: pool.is_fixed for pool in plan.pools}
    seen: dict[int, BufferPlacement] = {}
    for index, item in enumerate(plan.placements):
        path, name = (index,), f"b{item.buffer}"
        if item.device not in fixed:
            yield Problem(
                path, name, "a device with a pool", f"device {item.device}", "buffers lie in pools"
            )
            continue
        if item.buffer in seen:
            yield Problem(path, name, "each buffer once", f"{name} again", "places of buffers")
        if not 0 <= item.first <= item.last:
            yield Problem(
                path,
                name,
                "a first step that is not behind the last",
                f"{item.first} to {item.last}",
                "lifetimes",
            )
        if isinstance(item.size_bytes, int) and item.size_bytes < 0:
            yield Problem(path, name, "at least 0", str(item.size_bytes), "sizes of buffers")
        if item.offset_bytes is not None and (
            item.offset_bytes < 0 or item.offset_bytes % ALIGNMENT_BYTES
        ):
            yield Problem(
                path, name, f"a multiple of {ALIGNMENT_BYTES}", str(item.offset_bytes), "alignment"
            )
        if (item.offset_bytes is not None) != fixed[item.device] or (
            fixed[item.device] and not isinstance(item.size_bytes, int)
        ):
            expected = (
                "an offset and a size that are numbers"
                if fixed[item.device]
                else "a place above others"
            )
            got = f"{item.size_bytes} bytes, offset {item.offset_bytes}"
            yield Problem(path, name, expected, got, "places in a pool that is fixed, or is not")
        for other in item.after:
            if (
                other not in seen
                or seen[other].device != item.device
                or seen[other].is_data_dependent
            ):
                yield Problem(
                    path,
                    name,
                    "buffers of its device that are listed before",
                    f"b{other}",
                    "what lies below",
                )
        seen[item.buffer] = item


def _apart_fixed(placements: Sequence[tuple[int, BufferPlacement]]) -> Iterator[Problem]:
    """Compare each buffer with those that start below its end."""
    order = sorted(placements, key=lambda pair: pair[1].offset_bytes or 0)
    for position, (index, item) in enumerate(order):
        end = (item.offset_bytes or 0) + _number(item.size_bytes)
        for _, other in order[position + 1 :]:
            if (other.offset_bytes or 0) >= end:
                break
            if (
                _meet(item, other)
                and _number(other.size_bytes) > 0
                and _number(item.size_bytes) > 0
            ):
                got = f"{item.offset_bytes} to {end}, b{other.buffer} at {other.offset_bytes}"
                yield Problem(
                    (index,),
                    f"b{item.buffer}",
                    "places apart while both live",
                    got,
                    "overlap in space and time",
                )


def _apart_above(placements: Sequence[tuple[int, BufferPlacement]]) -> Iterator[Problem]:
    below: dict[int, set[int]] = {}
    early = [(index, item) for index, item in placements if not item.is_data_dependent]
    for position, (index, item) in enumerate(early):
        below[item.buffer] = {
            *item.after,
            *(each for other in item.after for each in below.get(other, ())),
        }
        for _, other in early[:position]:
            if _meet(item, other) and other.buffer not in below[item.buffer]:
                got = f"b{item.buffer} above {', '.join(f'b{each}' for each in item.after) or 'nothing'}"
                expected = f"a place above b{other.buffer}, which lives at the same time"
                yield Problem(
                    (index,), f"b{item.buffer}", expected, got, "overlap in space and time"
                )


def _meet(one: BufferPlacement, two: BufferPlacement) -> bool:
    return one.first <= two.last and two.first <= one.last


def _number(size_bytes: Dim) -> int:
    return size_bytes if isinstance(size_bytes, int) else 0


# ---- with the graph ------------------------------------------------------------------------------


def _fits(plan: MemoryPlan, fused: FusedGraph) -> Iterator[Problem]:
    places = {item.buffer: (index, item) for index, item in enumerate(plan.placements)}
    data_dependent = symbols_set(fused.steps)
    for buffer, (index, item) in places.items():
        path, name = (index,), f"b{buffer}"
        if buffer >= len(fused.buffers) or fused.buffers[buffer].kind != "workspace":
            yield Problem(path, name, "a workspace buffer of the graph", name, "what is planned")
            continue
        spec = fused.buffers[buffer]
        if spec.device != item.device:
            yield Problem(
                path, name, f"device {spec.device}", f"device {item.device}", "devices of buffers"
            )
        if (size_bytes := buffer_bytes(fused, buffer)) != item.size_bytes:
            yield Problem(
                path, name, f"{size_bytes} bytes", f"{item.size_bytes} bytes", "sizes of buffers"
            )
        if item.is_data_dependent != bool(data_dependent & set(symbols_of(item.size_bytes))):
            expected = "a block of its own for a size that a step reads, and for no other"
            yield Problem(
                path,
                name,
                expected,
                "late" if item.is_data_dependent else "not late",
                "blocks of their own",
            )
    yield from _lives(places, _uses(fused))


def _lives(places: Mapping[int, tuple[int, BufferPlacement]], uses: _Uses) -> Iterator[Problem]:
    for buffer, steps in uses.steps.items():
        if buffer not in places:
            yield Problem((), "plan", f"a place for b{buffer}", "none", "what is planned")
            continue
        index, item = places[buffer]
        first, last = min(steps), max(steps)
        for start, end in uses.loops:
            if first <= end and start <= last and not start < first <= last < end:
                first, last = min(first, start), max(last, end)
        if not item.first <= first <= last <= item.last:
            got = f"steps {item.first} to {item.last}"
            yield Problem(
                (index,), f"b{buffer}", f"steps {first} to {last}", got, "lifetimes cover all uses"
            )


class _Uses:
    """Workspace buffer -> the steps that name it, and (first, last step) of each loop; the end of
    control flow is a step, too."""

    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        self.steps: dict[int, list[int]] = {}
        self.loops: list[tuple[int, int]] = []

    def visit(self, steps: Sequence[Step], index: int) -> int:
        """Note the uses of some steps, the first of which is number ``index``; the number behind
        them."""
        for step in steps:
            start, index = index, index + 1
            self.use(start, _buffers(step))
            for part in parts_of(step):
                index = self.visit(part, index)
            if parts_of(step):
                if isinstance(step, LoopStep):
                    self.use(index, step.held)
                    self.loops.append((start, index))
                index += 1
        return index

    def use(self, index: int, buffers: Sequence[int]) -> None:
        """Note that a step names buffers."""
        for buffer in buffers:
            if self.fused.buffers[buffer].kind == "workspace":
                self.steps.setdefault(buffer, []).append(index)


def _uses(fused: FusedGraph) -> _Uses:
    uses = _Uses(fused)
    uses.visit(fused.steps, 0)
    return uses


def _buffers(step: Step) -> Sequence[int]:
    match step:
        case Group():
            return buffers_of(step)
        case Launch():
            return step.buffers
        case Copy():
            return step.operand, step.result
        case SymbolRead():
            return (step.buffer,)
        case Grow():
            return [buffer for buffer in (step.buffer, step.spare) if buffer >= 0]
        case LoopStep():
            return step.held
        case _:
            return ()
