"""Where actions run: the interface, and the executor that runs them in this process.

In: actions as data (``ActionSpec``). Out: outcomes. Not done here: processes (``pool``), choosing
what runs (``scheduler``).
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome, open_action, perform
from ingot_build_rules.engine.actions.rule import AnyRule, Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """One submission of an action; two submissions of equal actions are two."""

    action: ActionSpec


class Executor(Protocol):
    """Runs actions somewhere. Used by one thread.

    An executor finds everything about an action in its ``ActionSpec``.
    ``tests/unit/engine/test_executor_conformance.py`` holds what each must keep.
    """

    def capacity(self) -> int:
        """How many more actions it takes now; never waits. Who submits more is wrong."""
        ...

    def submit(self, action: ActionSpec) -> Handle:
        """Take an action; it runs at once or later, and ``wait`` gives its outcome."""
        ...

    def cancel(self, handle: Handle) -> None:
        """Say that nobody needs the outcome any more; never waits.

        ``wait`` still gives one outcome for it: a cancelled one if the action had not begun or
        could be stopped, else what came of it. An action that has ended stays as it is.
        """
        ...

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
        """Return what has ended, when something has or the time is over; now and then nothing
        before.

        Each submission has one outcome, in any order. An executor that is lost while it runs an
        action gives an outcome with an error.
        """
        ...

    def close(self, *, kill: bool) -> None:
        """End; with ``kill`` at once, and what was running is lost. What has no outcome yet gets
        none."""
        ...


class InlineExecutor:
    """Runs one action at a time in this process, while somebody waits: what is cancelled before
    never runs."""

    def __init__(self, rulebook: Rulebook, values: Values) -> None:
        """Run the rules of a rulebook on values of this process."""
        self._rulebook = rulebook
        self._values = values
        self._queue: deque[Handle] = deque()
        self._dropped: list[Handle] = []

    def capacity(self) -> int:
        """One action at a time; the scheduler sees its outcome before the next."""
        return 0 if self._queue else 1

    def submit(self, action: ActionSpec) -> Handle:
        """Take an action."""
        handle = Handle(action)
        self._queue.append(handle)
        return handle

    def cancel(self, handle: Handle) -> None:
        """Drop an action: as long as it is known here, it has not begun."""
        if handle in self._queue:
            self._queue.remove(handle)
            self._dropped.append(handle)

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
        """Run the next action to its end, however long that takes."""
        del timeout_seconds
        dropped, self._dropped = self._dropped, []
        if dropped or not self._queue:
            return [(handle, Outcome(cancelled=True)) for handle in dropped]
        handle = self._queue.popleft()
        try:
            rule, inputs = open_action(handle.action, self._rulebook, self._values)
        except ActionError as error:
            return [(handle, Outcome(error=error))]
        return [(handle, self.run(rule, inputs))]

    def run(self, rule: AnyRule, inputs: object) -> Outcome:
        """Run a rule."""
        return perform(rule, inputs, self._values, self._rulebook)

    def close(self, *, kill: bool) -> None:
        """Nothing is left behind."""
        del kill
        self._queue.clear()
        self._dropped.clear()
