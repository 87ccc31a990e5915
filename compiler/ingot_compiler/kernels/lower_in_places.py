"""Lowers a group of the fused graph to launches of loops that several units run at the same time.

In: a group; how many places the scratch of a launch has, one for each who runs it. Out: its
``LoweredGroup``. Not done here: the loops of each kind (``kinds``), the hook ``lower_group`` (a
back end each, which knows the number).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.kernels.kinds import KINDS
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.kernels.spread_units import spread_units
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.lowering.lower import lower
from ingot_compiler.targets.target import Target


def lower_in_places(
    group: Group, place_count: int, machine: Target = VECTOR_MACHINE
) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    lowered = lower(group, machine, KINDS)
    programs = map(partial(_in_places, place_count, machine), lowered.programs)
    return replace(lowered, programs=tuple(programs))


def _in_places(place_count: int, machine: Target, program: LoopProgram) -> LoopProgram:
    """A machine of teams runs more units than others have."""
    if machine.team_units > 1:
        program = spread_units(program, machine.f32_lanes)
    return replace(program, scratch_bytes=dim_mul(program.scratch_bytes, place_count))
