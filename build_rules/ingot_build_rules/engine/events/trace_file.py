"""What the actions of one target were made from, kept until the next build to say what has changed
since.

In: actions. Out: ``TargetTrace``, as a small file and again. Not done here: comparing two
(``explain``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ingot_build_rules.engine.actions.action import Action
from ingot_build_rules.engine.actions.key import Ingredient
from ingot_build_rules.engine.cache.state_file import read_state, write_state
from ingot_runtime.lazy_dataclass import dataclass

_KIND = "target trace 2"


@dataclass(frozen=True, slots=True)
class TracedAction:
    """One action: ``how`` is that of ``Action``, or checked for a hit that was run again; ``reads``
    are (name, digest) that it found while running; ``refs`` the artifacts that it made; ``where``
    its record is in the cache."""

    rule: str
    label: str
    key: str
    status: str
    seconds: float
    ingredients: tuple[Ingredient, ...]
    reads: tuple[tuple[str, str], ...]
    refs: tuple[str, ...]
    messages: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class TargetTrace:
    """``code``: digest of all code that it was made by; ``explanation``: of the last build in which
    something ran."""

    actions: tuple[TracedAction, ...]
    code: str = ""
    explanation: tuple[str, ...] = ()


def traced(trace: Iterable[tuple[str, Action]]) -> tuple[TracedAction, ...]:
    """Return the actions of a target, each once, in the order in which they were asked for; equal
    labels are numbered."""
    found: dict[bytes, TracedAction] = {}
    counts: dict[tuple[str, str], int] = {}
    for label, action in trace:
        if action.key.digest not in found:
            place = (action.rule.name, label)
            counts[place] = counts.get(place, 0) + 1
            number = f" #{counts[place]}" if counts[place] > 1 else ""
            found[action.key.digest] = _traced(f"{label}{number}".strip(), action)
    return tuple(found.values())


def _traced(label: str, action: Action) -> TracedAction:
    return TracedAction(
        action.rule.name,
        label,
        action.key.digest.hex(),
        "checked" if action.expected is not None and action.status == "ran" else action.status,
        action.seconds,
        action.key.ingredients,
        action.reads,
        action.refs,
        action.messages,
        action.where.hex(),
    )


def write_trace(path: str, trace: TargetTrace) -> None:
    """Keep a trace; a folder that cannot be written loses explanations and nothing else."""
    actions = [
        (
            item.rule, item.label, item.key, item.status, item.seconds,
            [(part.name, part.digest, part.text, part.parts) for part in item.ingredients],
            item.reads, item.refs, item.messages, item.where,
        )
        for item in trace.actions
    ]  # fmt: skip
    write_state(path, _KIND, [actions, trace.code, trace.explanation])


def read_trace(path: str) -> TargetTrace | None:
    """Return the trace of the last build; None if there is none that is whole."""
    state = read_state(path, _KIND)
    try:
        actions, code, explanation = cast("Any", state)
        return TargetTrace(
            tuple(_action(*item) for item in actions), str(code), tuple(map(str, explanation))
        )
    except (TypeError, ValueError):
        return None


def _action(
    rule: str,
    label: str,
    key: str,
    status: str,
    seconds: float,
    ingredients: Any,
    reads: Any,
    refs: Any,
    messages: Any,
    where: str,
) -> TracedAction:
    parts = tuple(Ingredient(*item) for item in ingredients)
    return TracedAction(rule, label, key, status, seconds, parts, reads, refs, messages, where)
