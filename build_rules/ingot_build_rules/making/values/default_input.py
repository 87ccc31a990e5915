"""The value of an input that a call need not give, as rules exchange it.

In: nothing. Out: ``DefaultInput``. Not done here: reading it (``import_model``), its section
(``bundle``).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DefaultInput:
    """What the input at ``position`` is where a call does not give it: dense little-endian
    elements."""

    position: int
    shape: tuple[int, ...]
    content: Artifact[memoryview]
