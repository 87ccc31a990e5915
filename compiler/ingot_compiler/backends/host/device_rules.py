"""The hook ``device_rules`` of processors: what fusion is told of a device that runs the host's
code.

In: a target. Out: ``DeviceRules``. Not done here: the rules (``anchors``).
"""

from ingot_compiler.kernels.anchors import ANCHORS
from ingot_compiler.lowering.fusion.device_rules import DeviceRules
from ingot_compiler.targets.target import parse_target


def device_rules(target: str) -> DeviceRules:
    """Every op with loops has a kind of kernel here."""
    return DeviceRules(parse_target(target), ANCHORS)
