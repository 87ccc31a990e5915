"""Copies between the host and a device that begin as soon as their bytes are there, and end where
they are needed.

In: the steps of a fused graph, its buffers. Out: the same steps, where a copy that others may run
beside is two steps. Not done here: how a device copies while it works (the loader's devices).

``place`` puts a copy before its first reader. One from or to the host now begins behind the last
step that writes what is copied, an input's before all steps, and ends before the first that names
the result, or behind all steps. Where nothing runs between the two it stays whole: such a program
needs no later loader.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from ingot_compiler.ir.dims import symbol_set
from ingot_compiler.lowering.groups.fused import (
    BufferSpec,
    Copy,
    Group,
    Grow,
    IfStep,
    LoopStep,
    Step,
    all_steps,
    buffers_named,
    buffers_of,
    symbols_set,
)
from ingot_runtime.lazy_dataclass import dataclass


def begin_copies_early(steps: Sequence[Step], buffers: Sequence[BufferSpec]) -> tuple[Step, ...]:
    """Take apart each copy from or to the host beside which something runs."""
    uses = _Uses.of(steps)
    copied = {step.result for step in steps if isinstance(step, Copy)}
    parts: dict[int, list[Copy]] = defaultdict(list)  # before the step of that number
    for index, step in enumerate(steps):
        if (
            isinstance(step, Copy)
            and _touches_host(step, buffers)
            and step.operand not in copied  # which may be there only when somebody names it
        ):
            first = uses.begin_of(index, step, buffers[step.operand])
            last = uses.end_of(index, step)
            if uses.runs_between(first, last):
                first = uses.next_run(first) if buffers[step.result].device else first
                parts[first].append(replace(step, part="begin"))
                parts[last].append(replace(step, part="end"))
    return tuple(_merged(steps, parts)) if parts else tuple(steps)


def _merged(steps: Sequence[Step], parts: dict[int, list[Copy]]) -> Iterator[Step]:
    """The steps with the parts of copies, those that begin first, in the place of the copies."""
    split = {step.result for each in parts.values() for step in each}
    for index in range(len(steps) + 1):
        yield from sorted(parts.get(index, ()), key=lambda step: step.part)
        for step in steps[index : index + 1]:
            if not isinstance(step, Copy) or step.result not in split:
                yield step


@dataclass(frozen=True, slots=True)
class _Uses:
    """By buffer the steps that write and that name it, by symbol those that bind it, ascending;
    ``runs``: the steps that compute."""

    step_count: int
    written: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    named: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    bound: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    runs: list[int] = field(default_factory=list[int])

    @classmethod
    def of(cls, steps: Sequence[Step]) -> _Uses:
        """What some steps use."""
        uses = cls(len(steps))
        for index, step in enumerate(steps):
            for inside in all_steps((step,)):
                for buffer in _named(inside):
                    uses.named[buffer].append(index)
                for buffer in _written(inside):
                    uses.written[buffer].append(index)
            for name in sorted(symbols_set((step,))):
                uses.bound[name].append(index)
            if isinstance(step, Group | IfStep | LoopStep):
                uses.runs.append(index)
        return uses

    def begin_of(self, index: int, step: Copy, spec: BufferSpec) -> int:
        """The step before which the bytes are there, with their number and room for them."""
        needed = [self.written[step.operand], self.named[step.result]]
        needed += [self.bound[name] for name in sorted(symbol_set(spec.element_count))]
        before = [found[: bisect_left(found, index)] for found in needed]
        first = 0 if spec.kind == "input" else index
        return max((found[-1] + 1 for found in before if found), default=first)

    def end_of(self, index: int, step: Copy) -> int:
        """The first step behind that names the result."""
        later = self.named[step.result][bisect_right(self.named[step.result], index) :]
        return later[0] if later else self.step_count

    def next_run(self, first: int) -> int:
        """The first step from there on that computes: what it needs is copied to its device before
        what is needed later."""
        return self.runs[bisect_left(self.runs, first)]

    def runs_between(self, first: int, last: int) -> bool:
        """Whether a step computes between two."""
        return bisect_left(self.runs, first) < bisect_left(self.runs, last)


def _touches_host(step: Copy, buffers: Sequence[BufferSpec]) -> bool:
    """Whether it is from or to the host, and not between two other devices."""
    return not (buffers[step.operand].device and buffers[step.result].device)


def _named(step: Step) -> Sequence[int]:
    return buffers_of(step) if isinstance(step, Group) else buffers_named(step)


def _written(step: Step) -> Sequence[int]:
    if isinstance(step, Group):
        return [operand.buffer for operand in step.results]
    if isinstance(step, Copy):
        return (step.result,)
    return buffers_named(step) if isinstance(step, Grow | LoopStep) else ()
