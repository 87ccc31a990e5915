"""The Trace Event Format, as strictly as a viewer may read it: ``checked_trace`` holds a text against
it.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU is the description
of the format; Perfetto and chrome://tracing read it.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any, NoReturn

Entry = dict[str, Any]

# phase -> the keys that an entry of it must have, those that it may have
PHASES = {
    "X": ({"name", "cat", "ph", "ts", "dur", "pid", "tid"}, {"args"}),  # a complete slice
    "i": ({"name", "cat", "ph", "ts", "pid", "tid", "s"}, {"args"}),  # an instant
    "M": ({"name", "ph", "pid", "args"}, {"tid"}),  # a name or an order for a viewer
}
# what metadata may say -> the key of its argument, its type
METADATA = {
    "process_name": ("name", str),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}
_INT32_MAX = (1 << 31) - 1


def checked_trace(text: str) -> list[Entry]:
    """Return the entries of a trace, or fail where it breaks a rule of the format."""
    trace = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_without_repetition)
    assert set(trace) <= {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    entries: list[Entry] = trace["traceEvents"]
    assert entries
    for entry in entries:
        _check_entry(entry)
    _check_lanes(entries)
    return entries


def _no_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), f"a key twice in {pairs}"
    return dict(pairs)


def _check_entry(entry: Entry) -> None:
    must, may = PHASES[entry["ph"]]
    assert must <= set(entry) <= must | may, entry
    assert isinstance(entry["name"], str)
    assert entry["name"]
    for name in {"pid", "tid"} & set(entry):
        assert type(entry[name]) is int
        assert 0 <= entry[name] <= _INT32_MAX
    for name in {"ts", "dur"} & set(entry):
        assert type(entry[name]) in (int, float)
        assert math.isfinite(entry[name])
        assert entry[name] >= 0
    assert isinstance(entry.get("args", {}), dict)
    if entry["ph"] == "i":
        assert entry["s"] in ("g", "p", "t")
    if entry["ph"] == "M":
        key, kind = METADATA[entry["name"]]
        assert set(entry["args"]) == {key}
        assert type(entry["args"][key]) is kind
        assert ("tid" in entry) == entry["name"].startswith("thread_")


def _check_lanes(entries: list[Entry]) -> None:
    """Each lane that is used has one name, as its process has; its slices lie in each other or
    apart: a viewer draws them as a stack."""
    named: dict[tuple[str, int, int | None], int] = defaultdict(int)
    for entry in entries:
        if entry["ph"] == "M":
            named[entry["name"], entry["pid"], entry.get("tid")] += 1
    assert set(named.values()) == {1}
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for entry in entries:
        if entry["ph"] != "M":
            assert ("process_name", entry["pid"], None) in named
            assert ("thread_name", entry["pid"], entry["tid"]) in named
            begin = _nanoseconds(entry["ts"])
            end = begin + _nanoseconds(entry.get("dur", 0))
            lanes[entry["pid"], entry["tid"]].append((begin, end))
    for slices in lanes.values():
        _check_nesting(slices)


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def _check_nesting(slices: list[tuple[int, int]]) -> None:
    open_ends: list[int] = []
    for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], "slices of a lane overlap in part"
        open_ends.append(end)
