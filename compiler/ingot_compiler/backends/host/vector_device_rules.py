"""The hook ``device_rules`` of what runs the loops of ``VECTOR_MACHINE``: what fusion is told of it.

In: a target. Out: ``DeviceRules``. Not done here: the rules (``anchors``).
"""

from ingot_compiler.kernels.anchors import ANCHORS
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.lowering.fusion.device_rules import DeviceRules


def device_rules(target: str) -> DeviceRules:
    """Every op with loops that the host has."""
    del target
    return DeviceRules(VECTOR_MACHINE, ANCHORS)
