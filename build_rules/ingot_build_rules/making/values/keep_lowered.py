"""Stores the launches of one group as artifacts.

In: a ``LoweredGroup``. Out: ``Lowered``. Not done here: lowering (``lower``, ``lower_claimed``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.making.values.lowered import Lowered
from ingot_compiler.lowering.loops.kernel_of import kernel_of

if TYPE_CHECKING:
    from ingot_build_rules.engine.actions.rule import RuleContext
    from ingot_compiler.lowering.groups.group_steps import LoweredGroup


def keep_lowered(context: RuleContext, lowered: LoweredGroup) -> Lowered:
    """Keep each program twice: for what launches it, and for what compiles it."""
    programs = tuple(map(context.keep, lowered.programs))
    kernels = [context.keep(kernel_of(program)) for program in lowered.programs]
    return Lowered(lowered.steps, programs, tuple(kernels))
