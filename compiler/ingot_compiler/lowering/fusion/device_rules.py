"""What fusion knows of one device: the record that its back end fills in.

In: nothing. Out: ``DeviceRules``. Not done here: any back end's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ingot_compiler.lowering.fusion.anchor import Anchor
from ingot_compiler.lowering.fusion.legalise import Expansion
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """``anchors``: op with loops of its own -> what it asks of its operands, and by that the kind
    of kernel that it becomes. ``legalise``: op that the device has no kernel for -> the ops that it
    becomes before anything is fused.
    """

    target: KernelTarget
    anchors: Mapping[str, Anchor]
    legalise: Mapping[str, Expansion] = field(default_factory=dict[str, Expansion])
