"""Parts of a group as launches one after the other, with workspaces between them.

In: a group, its parts, their loop programs, the operands that a part writes for the next one. Out:
what runs. Not done here: the parts (``split_pool``, ``split_reduce``, ``split_resize``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.groups.fused import Group, Operand, buffers_of
from ingot_compiler.lowering.groups.group_steps import GroupLaunch, GroupSteps, LoweredGroup
from ingot_compiler.lowering.loops.program import LoopProgram


def workspace_number(number: int) -> int:
    """What stands for a workspace among the values and buffers of a group's parts."""
    return -1 - number


WORKSPACE = workspace_number(0)
"""The only one of two parts."""


def launches_in_turn(
    group: Group, parts: Sequence[Group], programs: tuple[LoopProgram, ...], *between: Operand
) -> LoweredGroup:
    """One launch of each part's program; number ``i`` of ``between`` has the number
    ``workspace_number(i)``."""
    buffers = (*buffers_of(group), *map(workspace_number, range(len(between))))
    numbers = {buffer: number for number, buffer in enumerate(buffers)}
    launches = tuple(
        GroupLaunch(program, tuple(numbers[buffer] for buffer in buffers_of(part)))
        for program, part in enumerate(parts)
    )
    workspace: tuple[tuple[DType, Dim], ...] = tuple(
        (each.type.dtype, each.type.element_count) for each in between
    )
    return LoweredGroup(GroupSteps(launches, workspace), programs)
