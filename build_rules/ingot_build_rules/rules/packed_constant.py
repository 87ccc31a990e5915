"""A constant as kernels read it, and where it lies among the weights.

In: nothing. Out: ``PackedConstant``. Not done here: packing (``pack_constant``), places
(``weight_layout``).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PackedConstant:
    """``content`` goes to ``offset_bytes`` of the weights section."""

    offset_bytes: int
    size_bytes: int
    content: Artifact[memoryview]
