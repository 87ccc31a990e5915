"""Rule ``lower_claimed``: a group that a plug-in has claimed to its launches, and the loops of its
kernels.

In: a group, a target, hooks of the plug-in. Out: ``Lowered``. Not done here: calling hooks
(``ingot_compiler.plugins``), groups that nobody has claimed (``lower``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.keep_lowered import keep_lowered
from ingot_build_rules.making.values.lowered import Lowered
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.fused import Group
    from ingot_compiler.plugins.settings import PluginSettings


@dataclass(frozen=True, slots=True)
class LowerClaimedInputs:
    """``hook``: ``Plugin.lower``; ``passes``: its functions at the phase ``loops``."""

    group: Artifact[Group]
    hook: str
    passes: tuple[str, ...]
    settings: PluginSettings
    target: str


def _compute(context: RuleContext, inputs: LowerClaimedInputs) -> Lowered:
    from ingot_compiler.plugins.lower_claimed import lower_claimed

    hook, passes = context.load(inputs.hook), list(map(context.load, inputs.passes))
    lowered = lower_claimed(inputs.group.value(), inputs.target, inputs.settings, hook, passes)
    return keep_lowered(context, lowered)


LOWER_CLAIMED = Rule(
    "lower_claimed",
    1,
    ("group", "hook", "passes", "settings", "target"),
    _compute,
    tools=("zig",),
    loads=("hook", "passes"),
)
