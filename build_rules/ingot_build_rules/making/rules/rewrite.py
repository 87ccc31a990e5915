"""Rule ``rewrite``: OptimizedGraph to OptimizedGraph, by the functions of plug-ins at the phase
``graph``.

In: an optimized graph, hooks of plug-ins in their order. Out: ``OptimizedGraph``, verified. Not
done here: calling hooks (``ingot_compiler.plugins``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import OptimizedGraph
    from ingot_compiler.plugins.settings import PluginSettings


@dataclass(frozen=True, slots=True)
class RewriteInputs:
    """``hooks`` (``Pass.run``), and what the plug-in of each is told."""

    optimized: Artifact[OptimizedGraph]
    hooks: tuple[str, ...]
    settings: tuple[PluginSettings, ...]


def _compute(context: RuleContext, inputs: RewriteInputs) -> Artifact[OptimizedGraph]:
    from dataclasses import replace

    from ingot_compiler.plugins.rewrite_graph import rewrite_graph

    optimized = inputs.optimized.value()
    passes = list(zip(inputs.settings, map(context.load, inputs.hooks), strict=True))
    return context.keep(replace(optimized, graph=rewrite_graph(optimized.graph, passes)))


REWRITE = Rule("rewrite", 1, ("optimized", "hooks", "settings"), _compute, loads=("hooks",))
