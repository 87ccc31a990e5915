"""The hook ``lower_group`` of processors: a group of the fused graph to launches of loops.

In: a group, a target. Out: its ``LoweredGroup``. Not done here: the loops of each kind (``kinds``).
"""

from __future__ import annotations

from ingot_compiler.kernels.kinds import KINDS
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.lower import lower
from ingot_compiler.targets.target import parse_target


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    return lower(group, parse_target(target), KINDS)
