"""Checks that stage 7 of one group is well formed: its launches fit their kernels, and nothing is
used before it is there.

In: a ``LoweredGroup``; the group and its buffers, where they are known. Out: nothing, or
``InternalError`` that names the step. Not done here: the loops of the kernels (``verify_loops``).

Every program is launched, with a buffer of its element type for each that it names, none twice.
Workspace is written before it is read, on every way. Of a known group: its operands are not
written, and every way writes its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.groups.fused import BufferSpec, Group, buffers_of
from ingot_compiler.lowering.groups.group_steps import (
    Choice,
    GroupLaunch,
    GroupStep,
    LoweredGroup,
    launches_in,
)
from ingot_compiler.lowering.loops.program import Buffer, LoopProgram
from ingot_runtime.lazy_dataclass import dataclass


def verify_lowered(
    lowered: LoweredGroup, group: Group | None = None, buffers: Sequence[BufferSpec] = ()
) -> None:
    """Raise InternalError for the first problem; ``buffers``: those of the fused graph that has
    ``group``."""
    require_none(find_lowered_problems(lowered, group, buffers), "step", "group", "loops")


def find_lowered_problems(
    lowered: LoweredGroup, group: Group | None = None, buffers: Sequence[BufferSpec] = ()
) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    scope = _Scope.of(lowered, group, buffers)
    yield from scope.check(lowered.steps.steps, ())
    yield from _programs(lowered)
    if group is not None:
        for number, buffer in enumerate(buffers_of(group)):
            if number not in scope.read_only | scope.written:
                expected = f"a launch on every way that writes b{number}"
                yield Problem((), "group", expected, "none", f"result b{buffer}")


def _programs(lowered: LoweredGroup) -> Iterator[Problem]:
    """That each program is launched."""
    launched = {launch.program for launch in launches_in(lowered.steps.steps)}
    if launched != set(range(len(lowered.programs))) or not lowered.programs:
        expected = "kernels that are counted from 0, each launched"
        got = f"{len(lowered.programs)} kernels and launches of {sorted(launched)}"
        yield Problem((), "group", expected, got, "launches of a group")


@dataclass(slots=True)
class _Scope:
    """What a step finds: kernels, numbers of buffers, what was written before it."""

    programs: Sequence[LoopProgram]
    own_count: int
    buffer_count: int
    dtypes: dict[int, DType]
    read_only: frozenset[int]
    written: set[int] = field(default_factory=set[int])

    @staticmethod
    def of(lowered: LoweredGroup, group: Group | None, buffers: Sequence[BufferSpec]) -> _Scope:
        """What the first step finds."""
        steps = lowered.steps
        own = buffers_of(group) if group else ()
        own_count = len(own) if group else steps.group_buffer_count
        results = {result.buffer for result in group.results} if group else set[int]()
        dtypes: dict[int, DType]
        dtypes = {number: buffers[buffer].dtype for number, buffer in enumerate(own)}
        dtypes |= {number: dtype for number, (dtype, _) in enumerate(steps.workspace, own_count)}
        read_only = frozenset(number for number, buffer in enumerate(own) if buffer not in results)
        buffer_count = own_count + len(steps.workspace)
        return _Scope(lowered.programs, own_count, buffer_count, dtypes, read_only)

    def check(self, steps: Sequence[GroupStep], path: Path) -> Iterator[Problem]:
        """The problems of some steps, one after the other."""
        for index, step in enumerate(steps):
            at = (*path, index)
            if isinstance(step, GroupLaunch):
                yield from self.launch(step, at)
            else:
                yield from self.choice(step, at)

    def launch(self, step: GroupLaunch, at: Path) -> Iterator[Problem]:
        """Number and element types of buffers; workspace that is read."""
        if not 0 <= step.program < len(self.programs):
            expected = f"a kernel below {len(self.programs)}"
            yield _problem(at, expected, str(step.program), "kernels of a group")
            return
        program = self.programs[step.program]
        if len(step.buffers) != len(program.buffers) or len(set(step.buffers)) != len(step.buffers):
            got = ", ".join(f"b{buffer}" for buffer in step.buffers) or "none"
            yield _problem(at, f"{len(program.buffers)} that differ", got, "buffers of a launch")
            return
        for number, buffer in zip(step.buffers, program.buffers, strict=True):
            yield from self.argument(at, number, buffer)
        pairs = zip(step.buffers, program.buffers, strict=True)
        self.written |= {number for number, buffer in pairs if buffer.written}

    def argument(self, at: Path, number: int, buffer: Buffer) -> Iterator[Problem]:
        """That a buffer exists, has one element type everywhere, and may be read or written."""
        dtype = buffer.dtype
        if number >= self.buffer_count:
            expected = f"a buffer below b{self.buffer_count}"
            yield _problem(at, expected, f"b{number}", "buffers of a group")
        elif self.dtypes.setdefault(number, dtype) != dtype:
            expected = f"b{number} of {self.dtypes[number]}"
            yield _problem(at, expected, dtype, "element types of buffers")
        if not buffer.written and number >= self.own_count and number not in self.written:
            expected = "a launch before it that writes it, on every way"
            yield _problem(at, expected, f"b{number}", "workspace")
        if buffer.written and number in self.read_only:
            expected = "a kernel that only reads it"
            yield _problem(at, expected, f"b{number} written", "operands of a group")

    def choice(self, step: Choice, at: Path) -> Iterator[Problem]:
        """Behind it is there what both ways have made."""
        written = set(self.written)
        yield from self.check(step.then, (*at, 0))
        then_written, self.written = self.written, written
        yield from self.check(step.otherwise, (*at, 1))
        self.written &= then_written


def _problem(at: Path, expected: str, got: str, rule: str) -> Problem:
    return Problem(at, "launch", expected, got, rule)
