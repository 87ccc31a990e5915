"""The hook ``device_rules`` of ``cuda``: what fusion is told of a GPU.

In: a target. Out: ``DeviceRules``. Not done here: the rules (``kernels.anchors``).
"""

from ingot_compiler.kernels.anchors import ANCHORS
from ingot_compiler.kernels.machines import TEAM_MACHINE
from ingot_compiler.lowering.fusion.device_rules import DeviceRules


def device_rules(target: str) -> DeviceRules:
    """Every op with loops that the host has."""
    del target
    return DeviceRules(TEAM_MACHINE, ANCHORS)
