"""The native ``main`` of one variant, and the instruction list that it was made from.

In: nothing. Out: ``MainObject``. Not done here: making it (``codegen_main``): a change of that
leaves those alone who read this.
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_compiler.ir.message import Text
from ingot_runtime.lazy_dataclass import dataclass


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
