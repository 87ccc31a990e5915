"""Two parts of a group as two launches, with one workspace between them.

In: a group, its parts, their loop programs, the operand that the first part writes for the second.
Out: what runs. Not done here: the parts (``split_reduce``, ``split_resize``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.lowering.fused import Group, Operand, buffers_of
from ingot_compiler.lowering.group_steps import GroupLaunch, GroupSteps, LoweredGroup
from ingot_compiler.lowering.loops import LoopProgram

WORKSPACE = -1
"""What stands for the workspace among the values and buffers of a group's parts."""


def launches_in_turn(
    group: Group, parts: Sequence[Group], programs: tuple[LoopProgram, ...], between: Operand
) -> LoweredGroup:
    """One launch of each part's program; ``between`` has the number ``WORKSPACE``."""
    numbers = {buffer: number for number, buffer in enumerate((*buffers_of(group), WORKSPACE))}
    launches = tuple(
        GroupLaunch(program, tuple(numbers[buffer] for buffer in buffers_of(part)))
        for program, part in enumerate(parts)
    )
    workspace = (between.type.dtype, between.type.element_count)
    return LoweredGroup(GroupSteps(launches, (workspace,)), programs)
