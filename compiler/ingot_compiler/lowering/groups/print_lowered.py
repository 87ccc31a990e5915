"""Text form of stage 7 of one group: its steps, then the loops of its kernels; ``parse_lowered``
reads it back.

In: a ``LoweredGroup``. Out: text that ends with a newline. Not done here: the loops of a kernel
(``print_loops``).

A group that is one launch over all its buffers is the text of its kernel. Workspace has the numbers
behind those of the group's buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.dims import format_dim
from ingot_compiler.lowering.groups.group_steps import (
    Choice,
    GroupLaunch,
    GroupStep,
    GroupSteps,
    LoweredGroup,
)
from ingot_compiler.lowering.loops.print_loops import print_loops


def print_lowered(lowered: LoweredGroup) -> str:
    """Print what runs for the group."""
    kernels = "".join(map(print_loops, lowered.programs))
    return (
        kernels
        if lowered.is_one_launch
        else "".join(f"{line}\n" for line in _group(lowered.steps)) + kernels
    )


def _group(steps: GroupSteps) -> Iterator[str]:
    yield "group {"
    for number, (dtype, count) in enumerate(steps.workspace, steps.group_buffer_count):
        yield f"  workspace b{number}: {dtype} x {format_dim(count)}"
    yield from _steps(steps.steps)
    yield "}"


def _steps(steps: Sequence[GroupStep]) -> Iterator[str]:
    for step in steps:
        yield from (f"  {line}" for line in _step(step))


def _step(step: GroupStep) -> Iterator[str]:
    match step:
        case GroupLaunch(program, buffers):
            yield f"launch {program}({', '.join(f'b{buffer}' for buffer in buffers)})"
        case Choice(condition, then, otherwise):
            yield f"if {format_dim(condition)} {{"
            yield from _steps(then)
            yield "} else {"
            yield from _steps(otherwise)
            yield "}"
