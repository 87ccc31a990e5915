"""What fusion knows of an op with loops of its own.

In: nothing. Out: ``Anchor``. Not done here: which ops there are (``loop_anchors``, and those of
back ends).
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.fusion.fuser import Fuser
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
