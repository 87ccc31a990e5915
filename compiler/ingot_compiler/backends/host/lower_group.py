"""The hook ``lower_group`` of processors: a group of the fused graph to launches of loops.

In: a group, a target. Out: its ``LoweredGroup``. Not done here: the loops of each kind (``kinds``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.kinds import KINDS
from ingot_compiler.backends.host.targets.target import parse_target
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.group_steps import LoweredGroup
from ingot_compiler.lowering.lower import lower


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    return lower(group, parse_target(target), KINDS)
