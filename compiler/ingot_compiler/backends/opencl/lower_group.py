"""The hook ``lower_group`` of ``opencl``: a group of the fused graph to launches of loops.

In: a group, a target. Out: its ``LoweredGroup``. Not done here: the loops of each kind
(``host.kinds``).

Work items run at the same time, so the scratch of a launch holds that of each; ``ITEMS_MAX`` bounds
how many there are of a kernel that has scratch.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.backends.host.kinds import KINDS
from ingot_compiler.backends.host.vector_machine import VECTOR_MACHINE
from ingot_compiler.backends.opencl.work_items import ITEMS_MAX
from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.group_steps import LoweredGroup
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.lower import lower


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    del target
    lowered = lower(group, VECTOR_MACHINE, KINDS)
    return replace(lowered, programs=tuple(map(_with_scratch_of_items, lowered.programs)))


def _with_scratch_of_items(program: LoopProgram) -> LoopProgram:
    return replace(program, scratch_bytes=dim_mul(program.scratch_bytes, ITEMS_MAX))
