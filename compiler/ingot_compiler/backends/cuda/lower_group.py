"""The hook ``lower_group`` of ``cuda``: a group of the fused graph to launches of loops.

In: a group, a target. Out: its ``LoweredGroup``. Not done here: the loops of each kind
(``kernels.kinds``).

All threads run at the same time, so the scratch of a launch holds that of each eight of them;
``GROUPS_MAX`` bounds how many times eight there are of a kernel that has scratch.
"""

from __future__ import annotations

from ingot_compiler.backends.cuda.lane_group import GROUPS_MAX
from ingot_compiler.kernels.lower_in_places import lower_in_places
from ingot_compiler.kernels.machines import TEAM_MACHINE
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    del target
    return lower_in_places(group, GROUPS_MAX, TEAM_MACHINE)
