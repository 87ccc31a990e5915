"""Rule ``plan_memory``: where every workspace buffer of a FusedGraph lies.

In: a fused graph, the planner's name. Out: ``MemoryPlan``. Not done here: planners (``ingot_compiler.lowering.memory``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.lowering import plan_memory as lowering
from ingot_compiler.lowering.fused import FusedGraph
from ingot_compiler.lowering.plan_memory import MemoryPlan


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """``planner``: a name of the planners' table, or ``best``."""

    fused: FusedGraph
    planner: str


def _compute(_: Context, inputs: PlanInputs) -> MemoryPlan:
    return lowering.plan_memory(inputs.fused, inputs.planner)


PLAN_MEMORY = Rule("plan_memory", 1, ("fused", "planner"), _compute)
