"""The entries of a Chrome trace, for Perfetto (ui.perfetto.dev) and chrome://tracing.

In: a process, what it did and when. Out: entries, the text of a trace. Not done here: what is worth
an entry (``chrome_trace`` for builds, ``ingot_build_rules.tools.view.run_trace`` for runs).

The time axis is CLOCK_MONOTONIC in microseconds, which is also what ``time.perf_counter`` counts.
All processes between two starts of a machine share it, so that traces of builds and of runs can be
opened together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ingot_runtime.lazy_dataclass import dataclass

Entry = dict[str, Any]
VERSION = 1
"""The version of ``otherData`` and of ``args``; the rest is Chrome's format."""


@dataclass(frozen=True, slots=True)
class TraceProcess:
    """Who a trace is of: ``name``, as a viewer shows it, and ``pid``; ``started_seconds`` is what
    the clock said when the times of its entries count as 0."""

    name: str
    pid: int = 1
    started_seconds: float = 0.0

    def named(self) -> Entry:
        """Return the entry that tells a viewer the name."""
        return {"ph": "M", "pid": self.pid, "name": "process_name", "args": {"name": self.name}}

    def lanes(self, names: Mapping[int, str]) -> list[Entry]:
        """Return the entries that name lanes, threads to a viewer, and keep them in this order."""
        named = {"ph": "M", "pid": self.pid, "name": "thread_name"}
        order = {"ph": "M", "pid": self.pid, "name": "thread_sort_index"}
        return [
            entry
            for lane, name in names.items()
            for entry in (
                named | {"tid": lane, "args": {"name": name}},
                order | {"tid": lane, "args": {"sort_index": lane}},
            )
        ]

    def point(self, lane: int, name: str, category: str, seconds: float) -> Entry:
        """Return an entry without a duration."""
        return {
            "ph": "i", "s": "t", "pid": self.pid, "tid": lane, "name": name, "cat": category,
            "ts": self._nanoseconds(seconds) / 1000,
        }  # fmt: skip

    def slice(
        self,
        lane: int,
        name: str,
        category: str,
        start_seconds: float,
        end_seconds: float,
        arguments: Mapping[str, Any],
    ) -> Entry:
        """Return an entry with a duration; ``arguments`` is what a viewer shows when it is
        clicked."""
        begin, end = self._nanoseconds(start_seconds), self._nanoseconds(end_seconds)
        return {
            "ph": "X", "pid": self.pid, "tid": lane, "name": name, "cat": category,
            "args": dict(arguments), "ts": begin / 1000, "dur": (end - begin) / 1000,
        }  # fmt: skip

    def _nanoseconds(self, seconds: float) -> int:
        return round((self.started_seconds + seconds) * 1e9)


def trace_text(entries: Sequence[Entry], summary: Mapping[str, Any]) -> str:
    """Return the text of a trace, the same for the same entries."""
    document = {"version": VERSION, "clock": "CLOCK_MONOTONIC", **summary}
    trace = {"traceEvents": entries, "displayTimeUnit": "ms", "otherData": document}
    return json.dumps(trace, separators=(",", ":"), sort_keys=True) + "\n"
