"""Checks that a memory plan fits the fused graph that it is for.

In: a ``MemoryPlan``, a ``FusedGraph``. Out: problems. Not done here: whether the plan is safe in
itself (``verify_memory``).

Every workspace buffer that a step names is planned, with its size and device, for every step that
names it, and from one iteration of a loop to the next if it outlives one. Inputs and outputs may be
planned, too (all or none): inputs from the first step on, outputs to the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ingot_compiler.ir.dims import Dim, symbols_of
from ingot_compiler.ir.problem import Part, Problem
from ingot_compiler.lowering.groups.fused import (
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
from ingot_compiler.memory.memory_plan import BufferPlacement, MemoryPlan
from ingot_compiler.memory.planned_bytes import PlannedSizes

_TENSORS = ("input", "output")


def find_use_problems(plan: MemoryPlan, fused: FusedGraph) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    places = {item.buffer: (index, item) for index, item in enumerate(plan.placements)}
    data_dependent, planned = symbols_set(fused.steps), PlannedSizes(fused)
    for buffer, (index, item) in places.items():
        part = Part((index,), f"b{buffer}")
        if buffer >= len(fused.buffers) or fused.buffers[buffer].kind == "constant":
            expected = "a workspace buffer of the graph"
            yield part.problem(expected, part.name, "what is planned")
            continue
        yield from _fits(part, item, planned.buffer_bytes(buffer), data_dependent)
        device = 0 if item.device in plan.named else item.device
        if fused.buffers[buffer].device != device:
            expected = f"device {fused.buffers[buffer].device}"
            yield part.problem(expected, f"device {device}", "devices of buffers")
    known = [fused.buffers[buffer].kind for buffer in places if buffer < len(fused.buffers)]
    tensors = any(kind in _TENSORS for kind in known)
    yield from _lives(places, _uses(fused, tensors_inside=tensors))


def _fits(
    part: Part, item: BufferPlacement, size_bytes: Dim, data_dependent: Collection[str]
) -> Iterator[Problem]:
    """The size of a buffer of the graph; ``data_dependent``: symbols that steps set."""
    if size_bytes != item.size_bytes:
        got = f"{item.size_bytes} bytes"
        yield part.problem(f"{size_bytes} bytes", got, "sizes of buffers")
    if item.is_data_dependent != any(
        name in data_dependent for name in symbols_of(item.size_bytes)
    ):
        expected = "a block of its own for a size that a step reads, and for no other"
        got = "data-dependent" if item.is_data_dependent else "not data-dependent"
        yield part.problem(expected, got, "blocks of their own")


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
            part = Part((index,), f"b{buffer}")
            yield part.problem(f"steps {first} to {last}", got, "lifetimes cover all uses")


class _Uses:
    """Buffer of some kinds -> the steps that name it, and (first, last step) of each loop; the end of
    control flow is a step, too."""

    def __init__(self, fused: FusedGraph, kinds: Collection[str]) -> None:
        self.fused, self.kinds = fused, kinds
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
            if self.fused.buffers[buffer].kind in self.kinds:
                self.steps.setdefault(buffer, []).append(index)


def _uses(fused: FusedGraph, *, tensors_inside: bool) -> _Uses:
    uses = _Uses(fused, ("workspace", *(_TENSORS if tensors_inside else ())))
    end = uses.visit(fused.steps, 0)
    if tensors_inside:
        for buffer, spec in enumerate(fused.buffers):
            if spec.kind in _TENSORS:
                steps = uses.steps.setdefault(buffer, [])
                steps.append(0 if spec.kind == "input" else end)
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
