"""One kernel's machine code, named by its content.

In: nothing. Out: ``KernelObject``. Not done here: making it (``codegen``): a change of that leaves
those alone who read this.
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KernelObject:
    """``content``: a relocatable object of ``size_bytes`` that defines ``symbol``."""

    symbol: str
    content: Artifact[memoryview]
    size_bytes: int
