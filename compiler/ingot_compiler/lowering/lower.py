"""Lowers one group of the fused graph to loops.

In: a ``Group`` and the target. Out: its ``LoopProgram`` (stage 7). Not done here: machine code.
"""

from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kinds import KINDS
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.targets.target import Target


def lower(group: Group, target: Target) -> LoopProgram:
    """Apply the lowering of the group's kind."""
    return KINDS[group.kind](group, target)
