"""Machine code as rules exchange it: that of one kernel, and the ``main`` of one variant.

In: nothing. Out: ``KernelObject``, ``MainObject``. Not done here: making them (``codegen``,
``codegen_main``): a change of that leaves those alone who read these.
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_compiler.ir.message import Text
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KernelObject:
    """``content``: a relocatable object of ``size_bytes`` that defines ``symbol``."""

    symbol: str
    content: Artifact[memoryview]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MainObject:
    """``content``: a relocatable object; ``program``: the encoded list, which the vm steps;
    ``listing``: its text view; ``messages``: what it may say when it refuses its inputs;
    ``workspace_bytes``: per device, 0 where it depends on sizes."""

    content: Artifact[memoryview]
    program: Artifact[memoryview]
    listing: Artifact[str]
    messages: tuple[Text, ...]
    workspace_bytes: tuple[int, ...]
