"""The executor without a cache: runs every rule that is asked for, once per build; the oracle of cleverer ones.

In: rules and their inputs. Out: results, and how often each rule ran. Not done here: storage, scheduling, processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ingot_build_rules.engine.content import digest, key_of
from ingot_build_rules.engine.rule import Inputs, Output, Rule

AnyRule = Rule[Any, Any]
Observer = Callable[[str, int, int], None]
"""(rule name, results so far, results asked for so far), called after each result."""


@dataclass(slots=True)
class Count:
    """How often one rule was computed and how often its result was there already; seconds include what it needed."""

    ran: int = 0
    hit: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Progress:
    asked: int = 0
    done: int = 0


@dataclass(slots=True)
class Build:
    """One build: a context that keeps results in memory by key.

    Not safe for several threads at once. A rule that needs itself, directly or not, is an error.
    """

    rules: Iterable[AnyRule]
    observer: Observer | None = None
    counts: dict[str, Count] = field(default_factory=dict[str, Count])
    _results: dict[str, object] = field(default_factory=dict[str, object])
    _running: dict[str, str] = field(default_factory=dict[str, str])
    _digests: dict[int, tuple[object, str]] = field(default_factory=dict[int, tuple[object, str]])
    _progress: dict[str, _Progress] = field(default_factory=dict[str, _Progress])

    def __post_init__(self) -> None:
        for rule in self.rules:
            assert rule.name not in self.counts, f"two rules are called {rule.name}"
            self.counts[rule.name] = Count()
            self._progress[rule.name] = _Progress()

    def need(self, rule: Rule[Inputs, Output], inputs: Inputs) -> Output:
        """Return the result of ``rule`` for ``inputs``, computing it at most once."""
        return self.need_all(rule, (inputs,))[0]

    def need_all(self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs]) -> tuple[Output, ...]:
        """Return the results of ``rule`` for each of ``inputs``, computing each key at most once."""
        keys = [key_of(rule, item, self._digest)[0] for item in inputs]
        missing: dict[str, Inputs] = {}
        for key, item in zip(keys, inputs, strict=True):
            if key not in self._results:
                missing.setdefault(key, item)
        count = self.counts[rule.name]
        count.hit += len(keys) - len(missing)
        progress = self._progress[rule.name]
        progress.asked += len(missing)
        fresh = self._run(rule, missing)
        count.ran += len(missing)
        if not rule.transient:
            self._results.update(fresh)
        return tuple(cast("Output", fresh[key] if key in fresh else self._results[key]) for key in keys)

    def _run(self, rule: Rule[Inputs, Output], missing: dict[str, Inputs]) -> dict[str, Output]:
        for key in missing:
            if key in self._running:
                chain = " -> ".join([*self._running.values(), rule.name])
                raise RuntimeError(f"a rule needs its own result: {chain}")
        self._running.update(dict.fromkeys(missing, rule.name))
        started = time.perf_counter()
        try:
            return self._compute(rule, missing)
        finally:
            self.counts[rule.name].seconds += time.perf_counter() - started
            for key in missing:
                del self._running[key]

    def _compute(self, rule: Rule[Inputs, Output], missing: dict[str, Inputs]) -> dict[str, Output]:
        if rule.compute_all is not None and len(missing) > 1:
            together = rule.compute_all(self, tuple(missing.values()))
            self._report(rule.name, len(together))
            return dict(zip(missing, together, strict=True))
        results: dict[str, Output] = {}
        for key, item in missing.items():
            results[key] = rule.compute(self, item)
            self._report(rule.name, 1)
        return results

    def _report(self, name: str, fresh: int) -> None:
        progress = self._progress[name]
        progress.done += fresh
        if self.observer is not None:
            self.observer(name, progress.done, progress.asked)

    def _digest(self, value: object) -> str:
        """Digest a value once while it is the same object: stages are large and are ingredients of several rules."""
        if isinstance(value, str | int | float | bool | None):
            return digest(value)
        known = self._digests.get(id(value))
        if known is None or known[0] is not value:
            known = self._digests[id(value)] = (value, digest(value))
        return known[1]
