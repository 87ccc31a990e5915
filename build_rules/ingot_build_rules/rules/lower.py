"""Rule ``lower``: one group of a FusedGraph to a LoopProgram.

In: a group, a target. Out: ``LoopProgram``. Not done here: lowering itself (``ingot_compiler.lowering``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Context, Rule

if TYPE_CHECKING:
    from ingot_compiler.lowering.fused import Group
    from ingot_compiler.lowering.loops import LoopProgram


@dataclass(frozen=True, slots=True)
class LowerInputs:
    """Tile sizes depend on the target."""

    group: Artifact[Group]
    target: str


def _compute(context: Context, inputs: LowerInputs) -> Artifact[LoopProgram]:
    from ingot_compiler.lowering import lower as lowering
    from ingot_compiler.targets.target import parse_target

    return context.keep(lowering.lower(inputs.group.value(), parse_target(inputs.target)))


LOWER = Rule("lower", 1, ("group", "target"), _compute)
