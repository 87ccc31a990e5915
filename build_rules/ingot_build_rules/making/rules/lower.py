"""Rule ``lower``: one group of a FusedGraph to its launches, and the loops of its kernels.

In: a group, a target and its back end. Out: ``Lowered``. Not done here: the loops
(``ingot_compiler.backends``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.keep_lowered import keep_lowered
from ingot_build_rules.making.values.lowered import Lowered
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import LowerGroup
    from ingot_compiler.lowering.groups.fused import Group


@dataclass(frozen=True, slots=True)
class LowerInputs:
    """Tile sizes depend on the target; ``hook``: ``Backend.lower_group``."""

    group: Artifact[Group]
    hook: str
    target: str


def _compute(context: RuleContext, inputs: LowerInputs) -> Lowered:
    lower_group: LowerGroup = context.load(inputs.hook)
    lowered = lower_group(inputs.group.value(), inputs.target)
    return keep_lowered(context, lowered)


LOWER = Rule("lower", 2, ("group", "hook", "target"), _compute, loads=("hook",))
