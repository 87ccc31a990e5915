"""The hooks of ``cuda`` that hand on to what all back ends share; those with work of their own have
modules: ``compile_kernel``, ``link_library``, ``read_target``.

In: a target, a group. Out: what ``Backend`` says of each hook. Not done here: any of the work, which
each hook imports for itself (``code_digest``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules
    from ingot_compiler.lowering.groups.fused import Group
    from ingot_compiler.lowering.groups.group_steps import LoweredGroup


def device_rules(target: str) -> DeviceRules:
    """Every op with loops that the host has."""
    from ingot_compiler.kernels.anchors import ANCHORS
    from ingot_compiler.kernels.machines import TEAM_MACHINE
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules

    del target
    return DeviceRules(TEAM_MACHINE, ANCHORS)


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels.

    All threads run at the same time, so the scratch of a launch holds that of each eight of them;
    ``GROUPS_MAX`` bounds how many times eight there are of a kernel that has scratch.
    """
    from ingot_compiler.backends.cuda.architectures import GROUPS_MAX
    from ingot_compiler.kernels.lower_in_places import lower_in_places
    from ingot_compiler.kernels.machines import TEAM_MACHINE

    del target
    return lower_in_places(group, GROUPS_MAX, TEAM_MACHINE)
