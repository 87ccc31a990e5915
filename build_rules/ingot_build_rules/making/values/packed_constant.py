"""A constant as kernels read it, and where it lies among the weights.

In: nothing. Out: ``PackedConstant``. Not done here: packing (``pack_constant``), places
(``weight_layout``).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PackedConstant:
    """``size_bytes`` of ``content`` from ``start_bytes`` on go to ``offset_bytes`` of the weights
    section."""

    offset_bytes: int
    size_bytes: int
    content: Artifact[memoryview]
    start_bytes: int

    def part_of(self, content: memoryview) -> memoryview:
        """Return the constant's own bytes; ``content``: the value of that."""
        return content[self.start_bytes : self.start_bytes + self.size_bytes]
