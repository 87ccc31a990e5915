"""Rule ``plan_memory``: where every workspace buffer of a FusedGraph lies.

In: a fused graph, the steps of its groups, the planner's name, the user's pools. Out:
``MemoryPlan``. Not done here: planners (``ingot_compiler.memory.planners``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.fused import FusedGraph
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.memory.memory_plan import MemoryPlan


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """``steps``: of each group, whose own workspace is planned with the rest; ``planner``: a name
    of the planners' table, or ``best``; ``pools``: name of each, and its bytes if it has a limit,
    as they are preferred; ``device_count``: they are numbered behind the devices;
    ``tensors_inside``: inputs and outputs are planned with the rest, which C source can have."""

    fused: Artifact[FusedGraph]
    steps: tuple[GroupSteps, ...]
    planner: str
    pools: tuple[tuple[str, int | None], ...] = ()
    device_count: int = 1
    tensors_inside: bool = False


def _compute(context: RuleContext, inputs: PlanInputs) -> Artifact[MemoryPlan]:
    from ingot_compiler.lowering.groups.expand_groups import expand_groups
    from ingot_compiler.memory import plan_memory as planning
    from ingot_compiler.memory.plan_pools import plan_pools
    from ingot_compiler.memory.planners.buffers import MemoryPool

    fused = expand_groups(inputs.fused.value(), inputs.steps)
    if inputs.pools:
        pools = [MemoryPool(*pool) for pool in inputs.pools]
        return context.keep(plan_pools(fused, inputs.planner, pools, inputs.device_count))
    plan = planning.plan_memory(fused, inputs.planner, tensors_inside=inputs.tensors_inside)
    return context.keep(plan)


PLAN_MEMORY = Rule(
    "plan_memory",
    1,
    ("fused", "steps", "planner", "pools", "device_count", "tensors_inside"),
    _compute,
)
