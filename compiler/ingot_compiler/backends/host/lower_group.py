"""The hook ``lower_group`` of processors: a group of the fused graph to loops.

In: a group, a target. Out: its ``LoopProgram``. Not done here: the loops of each kind (``lowering.kinds``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.targets.target import parse_target
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kinds import KINDS
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.lower import lower


def lower_group(group: Group, target: str) -> LoopProgram:
    """Return the loops of the group's kind."""
    return lower(group, parse_target(target), KINDS)
