"""What of a build is done, running and left, as far as its events and the last build tell.

In: events and when they came. Out: ``BuildTally``. Not done here: displays (``build_progress``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field

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
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.printable import printable

LastActions = Callable[[str], Mapping[str, str] | None]
"""Target -> key -> rule of each action of its last build; None if there was none."""


def never_built(_: str) -> None:
    """Tell of a target that nobody knows how many actions it has."""


@dataclass(slots=True)
class BuildTally:
    """``history``: rule -> seconds of one action. ``running``: number -> (rule, label, second of
    its start), oldest first. ``ended``: rule -> how its actions ended, and how many.

    An action asks for further ones when it has ended, so a build learns only while it goes on how
    many there are. What tells it before is the last build of the same targets.
    """

    history: Mapping[str, float]
    last_actions: LastActions = never_built
    jobs: int = 1
    started: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    ended: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    running: dict[int, tuple[str, str, float]] = field(
        default_factory=dict[int, tuple[str, str, float]]
    )
    queued: dict[int, str] = field(default_factory=dict[int, str])
    _last: dict[str, Mapping[str, str]] | None = None
    _expected: Counter[str] = field(default_factory=Counter[str])

    def add(self, event: Event, seconds: float) -> None:
        """Take in one event that came at ``seconds``, on any clock."""
        match event:
            case BuildStarted():
                self.jobs, self.started = max(1, event.jobs), seconds
                self._expect(event.targets)
            case ActionQueued():
                self.queued[event.number] = event.rule
            case ActionStarted():
                self.queued.pop(event.number, None)
                self.running[event.number] = (event.rule, event.label, seconds)
            case ActionFinished():
                self.queued.pop(event.number, None)
                self.running.pop(event.number, None)
                self.counts[event.status] += 1
                self.ended.setdefault(event.rule, Counter())[event.status] += 1
            case TargetFinished(status="unchanged") if self._last is not None:
                self._last.pop(event.name, None)  # it was not even looked at
                self._count_expected()
            case _:
                pass

    def _expect(self, targets: tuple[str, ...]) -> None:
        """Remember the last build, if every target had one."""
        last = {name: self.last_actions(name) for name in targets}
        known = {name: actions for name, actions in last.items() if actions is not None}
        self._last = known if targets and len(known) == len(last) else None
        self._count_expected()

    def _count_expected(self) -> None:
        """Actions that several targets share are counted once."""
        rules: dict[str, str] = {}
        for actions in (self._last or {}).values():
            rules.update(actions)
        self._expected = Counter(rules.values())

    @property
    def done(self) -> int:
        """How many actions have ended."""
        return self.counts.total()

    @property
    def total(self) -> int | None:
        """How many actions the build has if it has those of the last one; None where nobody knows:
        a target was never built, or there are more of a rule than the last time."""
        rest = self._rest()
        return None if rest is None else self.done + self._pending().total() + rest.total()

    def seconds_left(self, seconds: float) -> float | None:
        """Return what the actions that are left at ``seconds`` still take by the history; None
        where nobody knows how many there are, or how long one takes."""
        rest = self._rest()
        if rest is None or not self.history:
            return None
        pending = {rule: float(count) for rule, count in self._pending().items()}
        for rule, count in rest.items():
            pending[rule] = pending.get(rule, 0.0) + count * self._share_that_runs(rule)
        spent = sum(
            min(seconds - start, self.history.get(rule, 0.0))
            for rule, _, start in self.running.values()
        )
        return max(0.0, estimate(self.history, pending, self.jobs) - spent / self.jobs)

    def _pending(self) -> Counter[str]:
        """Rules of the actions that are known and not done."""
        return Counter([*self.queued.values(), *(rule for rule, _, _ in self.running.values())])

    def _rest(self) -> Counter[str] | None:
        """Rules of the actions that nobody has asked for yet; None where that is not known."""
        if self._last is None:
            return None
        rest = Counter(self._expected)
        rest.subtract(self._pending())
        rest.subtract({rule: statuses.total() for rule, statuses in self.ended.items()})
        return None if any(count < 0 for count in rest.values()) else +rest

    def _share_that_runs(self, rule: str) -> float:
        """How many of the actions to come are not in the cache, as far as those of their rule tell,
        or else all."""
        statuses = self.ended.get(rule) or self.counts
        ended = statuses.total()
        return 1 - statuses["hit"] / ended if ended else 1.0


def action_text(action: ActionFinished | ActionStarted) -> str:
    """Return the rule's name and the action's label, for people."""
    return printable(f"{action.rule} {action.label}".strip())


def text_worth(event: Event) -> str:
    """Return what is to be told of an event at once and in every display; empty for most.

    What became of targets, and the errors of actions that failed, is told once: by the report at
    the end.
    """
    return f"{event.level}: {printable(event.text)}" if isinstance(event, Message) else ""
