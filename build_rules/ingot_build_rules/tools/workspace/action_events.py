"""A scheduler's actions as the events of a build.

In: actions that wait, start and end. Out: events to an observer. Not done here: displays, files
(``build_progress``).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.action import Action
from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionQueued,
    ActionStarted,
    ActionStatus,
    Message,
    Observer,
)
from ingot_build_rules.engine.scheduler import Observers


class ActionEvents:
    """Tells an observer of every action, and which others it needed."""

    def __init__(self, observer: Observer) -> None:
        """Nothing has been made yet."""
        self._observer = observer
        self._makers: dict[str, int] = {}

    def observers(self) -> Observers:
        """What a scheduler calls."""
        return Observers(self._started, self._ended, self._queued)

    def _queued(self, action: Action) -> None:
        self._observer(ActionQueued(action.number, action.rule.name, action.label))

    def _started(self, action: Action) -> None:
        self._observer(ActionStarted(action.number, action.rule.name, action.label))

    def _ended(self, action: Action) -> None:
        if action.status not in ("ran", "hit", "failed"):
            return
        parts = {part for item in action.key.ingredients for part in item.parts}
        needs = tuple(sorted({self._makers[part] for part in parts if part in self._makers}))
        self._makers.update(dict.fromkeys(action.refs, action.number))
        error = str(getattr(action.error, "what", action.error) or "")
        seconds = 0.0 if action.status == "hit" else action.seconds
        key = action.key.digest.hex()
        name, label = action.rule.name, action.label
        status: ActionStatus = (
            "failed" if action.status == "failed" else "ran" if action.status == "ran" else "hit"
        )
        self._observer(
            ActionFinished(action.number, name, label, status, seconds, key, error, needs)
        )
        for text in action.messages:
            self._observer(
                Message("warning", f"{name} ({label}): {text}" if label else f"{name}: {text}")
            )
