"""The reasons of a plan as texts, for what is told of a bundle.

In: a plan. Out: by place in the text, the steps that lead to the device of a call of an operator.
Not done here: finding them (``reasons``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.programs.expressions import OperatorCall
from ingot_compiler.programs.planner.plan import Plan
from ingot_compiler.programs.planner.reasons import Reasons

_STEPS_MAX = 8
"""Links that are told of one chain, beside what decides."""


def plan_steps(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The steps of each call, what decides first, then those nearest to the call; devices have the
    names of the program."""
    reasons, found = Reasons(plan), dict[str, tuple[str, ...]]()
    names = {str(one.device): one.name for one in reversed(plan.program.devices)}
    for expression in plan.network.domains:
        if isinstance(expression, OperatorCall):
            steps, is_cut = reasons.nearest(expression, _STEPS_MAX)
            texts = [_step_text(str(step), names) for step in steps]
            left_out = ["..."] if is_cut else []
            found[str(expression.span)] = (*texts[:1], *left_out, *texts[1:])
    return found


def _step_text(step: str, names: Mapping[str, str]) -> str:
    """A step that begins with its device, by the device's name."""
    return next(
        (name + step.removeprefix(text) for text, name in names.items() if step.startswith(text)),
        step,
    )
