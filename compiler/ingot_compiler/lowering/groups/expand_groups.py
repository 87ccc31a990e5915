"""Replaces each group by its steps: from then on a fused graph consists of launches.

In: a fused graph, the steps of each group. Out: the same graph with launches, their workspace among
its buffers. Not done here: kernels (``lower``), places of buffers (``plan_memory``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot_compiler.lowering.groups.fused import (
    BufferSpec,
    FusedGraph,
    Group,
    IfStep,
    Launch,
    LoopStep,
    Specialisation,
    Step,
    SymbolSet,
    buffers_of,
)
from ingot_compiler.lowering.groups.group_steps import GroupLaunch, GroupStep, GroupSteps
from ingot_compiler.lowering.groups.versions import versions_of
from ingot_runtime.lazy_dataclass import dataclass


def expand_groups(fused: FusedGraph, group_steps: Sequence[GroupSteps]) -> FusedGraph:
    """``group_steps[i]`` are those of the i-th group; ``Launch.program`` counts the programs of all
    groups, in order."""
    expansion = _Expansion(list(fused.buffers), iter(group_steps))
    general, *specialised = versions_of(fused)
    steps = list(expansion.steps(general.steps))
    specialisations: list[Specialisation] = []
    for version in specialised:
        specialisations.append(Specialisation(len(steps), version.profile))
        steps += expansion.steps(version.steps)
    return replace(
        fused,
        buffers=tuple(expansion.buffers),
        steps=tuple(steps),
        specialisations=tuple(specialisations),
    )


@dataclass(slots=True)
class _Expansion:
    buffers: list[BufferSpec]
    group_steps: Iterator[GroupSteps]
    group_count: int = 0
    program_count: int = 0

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the steps with launches in the place of groups."""
        return tuple(found for step in steps for found in self._expanded(step))

    def _expanded(self, step: Step) -> Iterator[Step]:
        if isinstance(step, Group):
            yield from self._group(step, next(self.group_steps))
        elif isinstance(step, IfStep):
            then = self.steps(step.then)
            yield replace(step, then=then, otherwise=self.steps(step.otherwise))
        elif isinstance(step, LoopStep):
            yield replace(step, body=self.steps(step.body))
        else:
            yield step

    def _group(self, group: Group, own: GroupSteps) -> Iterator[Step]:
        workspace = [
            BufferSpec("workspace", dtype, count, device=group.device)
            for dtype, count in own.workspace
        ]
        first = len(self.buffers)
        self.buffers += workspace
        buffers = (*buffers_of(group), *range(first, len(self.buffers)))
        place = _GroupPlace(group, self.group_count, buffers, self.program_count)
        yield from place.steps(own.steps)
        self.group_count += 1
        self.program_count += own.program_count


@dataclass(slots=True)
class _GroupPlace:
    """One group's place in a graph: its number, what its buffers are, its first program."""

    group: Group
    number: int
    buffers: tuple[int, ...]
    program: int
    choices: int = 0

    def steps(self, steps: Sequence[GroupStep]) -> Iterator[Step]:
        for step in steps:
            if isinstance(step, GroupLaunch):
                buffers = tuple(self.buffers[buffer] for buffer in step.buffers)
                yield Launch(self.group, self.program + step.program, buffers)
            else:
                name = f"group{self.number}_choice{self.choices}"
                self.choices += 1
                yield SymbolSet((name,), (step.condition,))
                then = tuple(self.steps(step.then))
                yield IfStep(name, then, tuple(self.steps(step.otherwise)))
