"""Rule ``plan_memory``: where every workspace buffer of a FusedGraph lies.

In: a fused graph, the steps of its groups, the planner's name. Out: ``MemoryPlan``. Not done here:
planners (``ingot_compiler.memory.planners``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext

if TYPE_CHECKING:
    from ingot_compiler.lowering.fused import FusedGraph
    from ingot_compiler.lowering.group_steps import GroupSteps
    from ingot_compiler.memory.memory_plan import MemoryPlan


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """``steps``: of each group, whose own workspace is planned with the rest; ``planner``: a name
    of the planners' table, or ``best``."""

    fused: Artifact[FusedGraph]
    steps: tuple[GroupSteps, ...]
    planner: str


def _compute(context: RuleContext, inputs: PlanInputs) -> Artifact[MemoryPlan]:
    from ingot_compiler.lowering.expand_groups import expand_groups
    from ingot_compiler.memory import plan_memory as planning

    return context.keep(
        planning.plan_memory(expand_groups(inputs.fused.value(), inputs.steps), inputs.planner)
    )


PLAN_MEMORY = Rule("plan_memory", 1, ("fused", "steps", "planner"), _compute)
