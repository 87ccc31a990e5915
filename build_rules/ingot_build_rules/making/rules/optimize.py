"""Rule ``optimize``: Graph to OptimizedGraph.

In: a graph, perhaps sizes for its symbols. Out: ``OptimizedGraph``, verified. Not done here: the
passes (``ingot_compiler.passes``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph, OptimizedGraph
    from ingot_compiler.ir.sizes.profile import Profile


@dataclass(frozen=True, slots=True)
class OptimizeInputs:
    """``profile``: the sizes that the result is for, of ``--shape``."""

    graph: Artifact[Graph]
    profile: Profile = ()


def _compute(context: RuleContext, inputs: OptimizeInputs) -> Artifact[OptimizedGraph]:
    from ingot_compiler.ir.specialise import check_sizes, specialise
    from ingot_compiler.passes import pipeline
    from ingot_compiler.passes.hold_rows import hold_rows
    from ingot_compiler.passes.hold_state import hold_state
    from ingot_compiler.passes.hold_whole import hold_whole

    # First: all versions have the same states.
    graph = hold_rows(hold_whole(hold_state(inputs.graph.value())))
    if inputs.profile:
        graph = specialise(graph, inputs.profile)
        check_sizes(graph, inputs.profile)
    return context.keep(pipeline.optimize(graph))


OPTIMIZE = Rule("optimize", 1, ("graph", "profile"), _compute)
