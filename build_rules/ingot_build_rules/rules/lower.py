"""Rule ``lower``: one group of a FusedGraph to a LoopProgram.

In: a group, a target and its back end. Out: ``LoopProgram``. Not done here: the loops (``ingot_compiler.backends``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Context, Rule

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import LowerGroup
    from ingot_compiler.lowering.fused import Group
    from ingot_compiler.lowering.loops import LoopProgram


@dataclass(frozen=True, slots=True)
class LowerInputs:
    """Tile sizes depend on the target; ``hook``: ``Backend.lower_group``."""

    group: Artifact[Group]
    hook: str
    target: str


def _compute(context: Context, inputs: LowerInputs) -> Artifact[LoopProgram]:
    lower_group: LowerGroup = context.load(inputs.hook)
    return context.keep(lower_group(inputs.group.value(), inputs.target))


LOWER = Rule("lower", 1, ("group", "hook", "target"), _compute, loads=("hook",))
