"""What one build of a project did.

In: results of bundles and tests, counts of actions, explanations. Out: ``Report``, also as plain
values. Not done here: building (``run_build``), printing (``cli.build``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingot_build_rules.engine.actions.build import Count
from ingot_build_rules.engine.cache.unchanged import Stamp
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_runtime.html_table import html_table


@dataclass(slots=True, repr=False)
class Report:
    """What a build did. ``explanations``: by bundle, why what ran did; ``would_run``: what had to
    run and was not allowed to; ``looked_at``: what every source looked like when it had the content
    that was built, None where one has changed since."""

    results: list[TargetResult] = field(default_factory=list[TargetResult])
    counts: Mapping[str, Count] = field(default_factory=dict[str, Count])
    seconds: float = 0.0
    explanations: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    would_run: list[str] = field(default_factory=list[str])
    tool_paths: tuple[str, ...] = ()
    looked_at: Mapping[str, Stamp] | None = None

    def __repr__(self) -> str:
        """Return how many bundles and tests ended in which way, and what ran."""
        return f"<ingot.Report {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = [(item.name, item.status, item.path, item.root[:16]) for item in self.results]
        return html_table(self._summary(), rows)

    def _summary(self) -> str:
        statuses = Counter(item.status for item in self.results)
        ended = (
            ", ".join(f"{count} {status}" for status, count in statuses.items())
            or "nothing to build"
        )
        ran = sum(count.ran for count in self.counts.values())
        hits = sum(count.hit for count in self.counts.values())
        return f"{ended}; {ran} actions ran, {hits} from the cache, {self.seconds:.2f} s"

    def named(self, *statuses: str) -> list[str]:
        """Names of the bundles and tests that ended in one of these ways."""
        return [item.name for item in self.results if item.status in statuses]

    def good(self) -> list[str]:
        """Names of the bundles and tests that are as they should be now."""
        return [item.name for item in self.results if item.is_good]

    def rules(self) -> dict[str, dict[str, int]]:
        """How many actions of each rule ran, and of how many the result was there already."""
        return {name: {"ran": count.ran, "hit": count.hit} for name, count in self.counts.items()}

    def plain(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "rules": self.rules(),
            "seconds": round(self.seconds, 3),
            "targets": {
                item.name: {
                    "status": item.status,
                    "output": item.path or None,
                    "digest": item.root or None,
                    "placement": list(item.placement),
                }
                for item in self.results
            },
            "built": self.good(),
            "failed": self.named("failed"),
            "skipped": self.named("skipped"),
            "would_run": self.would_run,
            "explanations": {name: list(lines) for name, lines in self.explanations.items()},
        }
