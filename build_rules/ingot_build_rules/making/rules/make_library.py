"""Rule ``make_library``: the finished code that a plug-in brings, for one target.

In: a target, the hook. Out: name and object of each part. Not done here: calling the hook
(``ingot_compiler.plugins``), linking (``join_libraries``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.plugins.settings import PluginSettings

LibraryObjects = tuple[tuple[str, Artifact[memoryview]], ...]


@dataclass(frozen=True, slots=True)
class LibraryInputs:
    """``hook``: ``Plugin.library``."""

    hook: str
    settings: PluginSettings
    target: str


def _compute(context: RuleContext, inputs: LibraryInputs) -> LibraryObjects:
    from ingot_compiler.plugins.make_library import make_library

    made = make_library(inputs.target, inputs.settings, context.load(inputs.hook))
    return tuple((name, context.keep_bytes(content)) for name, content in made)


MAKE_LIBRARY = Rule(
    "make_library", 1, ("hook", "settings", "target"), _compute, tools=("zig",), loads=("hook",)
)
