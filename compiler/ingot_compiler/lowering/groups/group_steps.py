"""The steps of one group: launches of kernels over its buffers and over workspace of its own, and
choices between them.

In: nothing. Out: ``GroupSteps``, ``LoweredGroup``. Not done here: making them (``kinds``), putting
them in the group's place (``expand_groups``).

Buffers are counted from 0: the distinct buffers of the group's operands and results, in their
order, then its workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GroupLaunch:
    """One launch of the group's program number ``program``; ``buffers``: what the program's buffers
    are.

    A launch that names a buffer of the group's results completes what the group stores there.
    """

    program: int
    buffers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """``then`` where ``condition``, over the sizes of a call, is not 0; else ``otherwise``."""

    condition: Dim
    then: tuple[GroupStep, ...]
    otherwise: tuple[GroupStep, ...]


GroupStep = GroupLaunch | Choice


@dataclass(frozen=True, slots=True)
class GroupSteps:
    """``workspace``: element type and count of each buffer that lives from one launch of the group
    to another."""

    steps: tuple[GroupStep, ...]
    workspace: tuple[tuple[DType, Dim], ...] = ()

    @property
    def program_count(self) -> int:
        """How many programs the launches name."""
        return 1 + max((launch.program for launch in launches_in(self.steps)), default=-1)

    @property
    def group_buffer_count(self) -> int:
        """How many buffers the group itself has: its workspace has the last numbers, each of which
        some launch names."""
        launched = (buffer for launch in launches_in(self.steps) for buffer in launch.buffers)
        return max(0, 1 + max(launched, default=-1) - len(self.workspace))


@dataclass(frozen=True, slots=True)
class LoweredGroup:
    """Stage 7 of one group: what runs, and the loops of its kernels."""

    steps: GroupSteps
    programs: tuple[LoopProgram, ...]

    @property
    def is_one_launch(self) -> bool:
        """Whether it is one kernel over all buffers of the group, and nothing else."""
        return len(self.programs) == 1 and self == one_launch(self.programs[0])


def one_launch(program: LoopProgram) -> LoweredGroup:
    """One launch of a program, whose buffers are those of the group."""
    return LoweredGroup(
        GroupSteps((GroupLaunch(0, tuple(range(len(program.buffers)))),)), (program,)
    )


def launches_in(steps: Sequence[GroupStep]) -> Iterator[GroupLaunch]:
    """Every launch, in the order in which launches are numbered."""
    for step in steps:
        if isinstance(step, GroupLaunch):
            yield step
        else:
            yield from launches_in(step.then)
            yield from launches_in(step.otherwise)


def launch_count(groups: Sequence[GroupSteps]) -> int:
    """How many launches some groups are."""
    return sum(1 for group in groups for _ in launches_in(group.steps))


def choose(condition: Dim, then: LoweredGroup, otherwise: LoweredGroup) -> LoweredGroup:
    """``then`` where ``condition`` is not 0, else ``otherwise``; each has programs of its own, and
    one workspace serves both."""
    moved = moved_programs(otherwise.steps.steps, len(then.programs))
    needed = {each.steps.workspace for each in (then, otherwise)} - {()}
    assert len(needed) <= 1, "one workspace serves both"
    steps = GroupSteps((Choice(condition, then.steps.steps, moved),), *needed)
    return LoweredGroup(steps, (*then.programs, *otherwise.programs))


def moved_programs(steps: Sequence[GroupStep], first: int) -> tuple[GroupStep, ...]:
    """Return the steps with their programs counted from ``first``."""

    def moved(step: GroupStep) -> GroupStep:
        if isinstance(step, GroupLaunch):
            return replace(step, program=step.program + first)
        then, otherwise = moved_programs(step.then, first), moved_programs(step.otherwise, first)
        return Choice(step.condition, then, otherwise)

    return tuple(map(moved, steps))
