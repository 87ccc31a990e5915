"""Rule ``claim``: PlacedGraph to PlacedGraph, with composites of what plug-ins compute.

In: a placed graph, hooks of plug-ins in the order in which the user names them. Out:
``PlacedGraph``, verified. Not done here: who gets what (``ingot_compiler.plugins``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.placement.placed import PlacedGraph
    from ingot_compiler.plugins.settings import PluginSettings


@dataclass(frozen=True, slots=True)
class ClaimInputs:
    """``hooks`` (``Plugin.claim``), and what the plug-in of each is told."""

    placed: Artifact[PlacedGraph]
    hooks: tuple[str, ...]
    settings: tuple[PluginSettings, ...]


def _compute(context: RuleContext, inputs: ClaimInputs) -> Artifact[PlacedGraph]:
    from ingot_compiler.plugins.partition import partition

    claimers = list(zip(inputs.settings, map(context.load, inputs.hooks), strict=True))
    return context.keep(partition(inputs.placed.value(), claimers))


CLAIM = Rule("claim", 1, ("placed", "hooks", "settings"), _compute, loads=("hooks",))
