"""What fusion knows of one device, the record that its back end fills in, and of an op with loops
of its own there.

In: nothing. Out: ``DeviceRules``, ``Anchor``. Not done here: any back end's rules, which ops there
are (``loop_anchors``, and those of back ends).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.legalise import Expansion
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_runtime.lazy_dataclass import dataclass

AnchorRule = Callable[[Fuser, int, Node], None]
"""(fuser, index of the node, node): asks for the operands and defers the node, or computes it at
once."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """``reads_image``: operand 0 should lie channels-last; ``reads_halo``: with what its pads name
    around it."""

    rule: AnchorRule
    reads_image: bool = False
    reads_halo: bool = False


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """``anchors``: op with loops of its own -> what it asks of its operands, and by that the kind
    of kernel that it becomes. ``legalise``: op that the device has no kernel for -> the ops that it
    becomes before anything is fused.
    """

    target: KernelTarget
    anchors: Mapping[str, Anchor]
    legalise: Mapping[str, Expansion] = field(default_factory=dict[str, Expansion])
