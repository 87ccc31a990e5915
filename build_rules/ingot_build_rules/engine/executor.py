"""Where actions run: the interface, and the executor that runs them in this process.

In: actions as a rule's name and encoded inputs. Out: outcomes by number. Not done here: processes (``pool``), choosing what runs.
"""

from __future__ import annotations

from typing import Protocol

from ingot_build_rules.engine.perform import Outcome, perform
from ingot_build_rules.engine.rule import AnyRule, Rulebook
from ingot_build_rules.engine.values import Values


class Executor(Protocol):
    """Runs actions somewhere."""

    def room(self, waiting_count: int, waiting_seconds: float) -> int:
        """How many more actions can start now, where so many wait that would take so long one after the other."""
        ...

    def submit(self, number: int, rule: str, inputs: object) -> None:
        """Start an action."""
        ...

    def wait(self, timeout_seconds: float | None) -> list[tuple[int, Outcome]]:
        """Return what has ended, when something has or the time is over; now and then nothing before."""
        ...

    def close(self, *, kill: bool) -> None:
        """End; with ``kill`` at once, and what was running is lost."""
        ...


class InlineExecutor:
    """Runs each action where it is submitted."""

    def __init__(self, rulebook: Rulebook, values: Values) -> None:
        """Run the rules of a rulebook on values of this process."""
        self._rulebook = rulebook
        self._values = values
        self._ended: list[tuple[int, Outcome]] = []

    def room(self, waiting_count: int, waiting_seconds: float) -> int:
        """One action at a time; the scheduler sees its outcome before the next."""
        del waiting_count, waiting_seconds
        return 0 if self._ended else 1

    def submit(self, number: int, rule: str, inputs: object) -> None:
        """Run an action now."""
        self._ended.append((number, self.run(self._rulebook.by_name[rule], inputs)))

    def run(self, rule: AnyRule, inputs: object) -> Outcome:
        """Run an action."""
        return perform(rule, inputs, self._values, self._rulebook.errors)

    def wait(self, timeout_seconds: float | None) -> list[tuple[int, Outcome]]:
        """Return the outcome."""
        del timeout_seconds
        ended, self._ended = self._ended, []
        return ended

    def close(self, *, kill: bool) -> None:
        """Nothing is left behind."""
        del kill
        self._ended.clear()
