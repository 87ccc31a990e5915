"""What of a build is done, running and left, as far as its events tell.

In: events and when they came. Out: ``BuildTally``. Not done here: displays (``build_progress``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionQueued,
    ActionStarted,
    BuildStarted,
    Event,
    Message,
    TargetFinished,
)
from ingot_build_rules.engine.events.history import estimate
from ingot_runtime.printable import printable


@dataclass(slots=True)
class BuildTally:
    """``history``: rule -> seconds of one action. ``running``: number -> (rule, label, second of
    its start), oldest first."""

    history: Mapping[str, float]
    jobs: int = 1
    started: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    running: dict[int, tuple[str, str, float]] = field(
        default_factory=dict[int, tuple[str, str, float]]
    )
    queued: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, event: Event, seconds: float) -> None:
        """Take in one event that came at ``seconds``, on any clock."""
        if isinstance(event, BuildStarted):
            self.jobs, self.started = max(1, event.jobs), seconds
        elif isinstance(event, ActionQueued):
            self.queued[event.number] = event.rule
        elif isinstance(event, ActionStarted):
            self.queued.pop(event.number, None)
            self.running[event.number] = (event.rule, event.label, seconds)
        elif isinstance(event, ActionFinished):
            self.queued.pop(event.number, None)
            self.running.pop(event.number, None)
            self.counts[event.how] += 1

    @property
    def done(self) -> int:
        """How many actions have ended."""
        return self.counts.total()

    @property
    def left(self) -> int:
        """How many actions are known and not done."""
        return len(self.queued) + len(self.running)

    def seconds_left(self, seconds: float) -> float:
        """Return what the actions known at ``seconds`` still take by the history; 0 where there is
        none."""
        pending = Counter([*self.queued.values(), *(rule for rule, _, _ in self.running.values())])
        spent = sum(
            min(seconds - start, self.history.get(rule, 0.0))
            for rule, _, start in self.running.values()
        )
        return max(0.0, estimate(self.history, pending, self.jobs) - spent / self.jobs)


def action_text(action: ActionFinished | ActionStarted) -> str:
    """Return the rule's name and the action's label, for people."""
    return printable(f"{action.rule} {action.label}".strip())


def text_worth(event: Event) -> str:
    """Return what is to be told of an event at once and in every display; empty for most."""
    match event:
        case ActionFinished(how="failed"):
            return f"failed: {action_text(event)}: {printable(event.error_line)}"
        case TargetFinished(how="unchanged"):
            return ""
        case TargetFinished():
            return printable(f"{event.how}: {event.output or event.name}")
        case Message():
            return f"{event.level}: {printable(event.text)}"
        case _:
            return ""
