"""The actions that wait to run, and what they are expected to cost.

In: names of rules, what their actions took, medians of past builds. Out: how many wait, how long
they would take, the ``Cost`` of one. Not done here: their order (``scheduler``), what to do about
it (``local``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ingot_build_rules.engine.actions.action_spec import Cost
from ingot_build_rules.engine.actions.build import Count


class Backlog:
    """One build's; the scheduler fills it, an executor that starts processes of its own may look at
    it."""

    def __init__(self, history: Mapping[str, float] | None = None) -> None:
        """``history``: rule -> seconds of one action in past builds."""
        self.counts: dict[str, Count] = {}
        self._history = history or {}
        self._waiting: Counter[str] = Counter()

    def add(self, rule: str) -> None:
        """One more action waits."""
        self._waiting[rule] += 1

    def remove(self, rule: str) -> None:
        """One action waits no more."""
        self._waiting[rule] -= 1

    def count(self) -> int:
        """How many actions wait."""
        return self._waiting.total()

    def seconds(self) -> float:
        """How long the waiting actions would take one after the other, by those of their rule that
        have run in this build."""
        return sum(
            count * self.counts[rule].expected_seconds() for rule, count in self._waiting.items()
        )

    def cost(self, rule: str) -> Cost:
        """What the next action of a rule will cost: as in this build, or as in past ones."""
        count = self.counts[rule]
        if not count.ran:
            return Cost(self._history.get(rule))
        return Cost(count.expected_seconds(), count.result_bytes // count.ran)
