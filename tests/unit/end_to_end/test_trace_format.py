"""The judge of traces finds what a viewer would stumble over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.trace_format import checked_trace

PROCESS = {"ph": "M", "pid": 7, "name": "process_name", "args": {"name": "p"}}
LANE = {"ph": "M", "pid": 7, "tid": 1, "name": "thread_name", "args": {"name": "one"}}
SLICE = {"ph": "X", "pid": 7, "tid": 1, "name": "a", "cat": "c", "ts": 1.0, "dur": 2.0}
INSIDE = SLICE | {"name": "b", "ts": 1.5, "dur": 0.5}
BEHIND = SLICE | {"name": "c", "ts": 3.0}


def text_of(*entries: dict[str, Any]) -> str:
    """Return the text of a trace."""
    return json.dumps({"traceEvents": [PROCESS, LANE, *entries], "displayTimeUnit": "ms"})


def test_a_good_trace() -> None:
    """Slices lie in each other or apart."""
    assert len(checked_trace(text_of(BEHIND, SLICE, INSIDE))) == 5


@pytest.mark.parametrize(
    "entries",
    [
        [SLICE | {"ph": "Q"}],
        [SLICE | {"ts": -1.0}],
        [SLICE | {"ts": float("nan")}],
        [SLICE | {"dur": -0.5}],
        [SLICE | {"dur": "2"}],
        [SLICE | {"pid": 8}],
        [SLICE | {"pid": "7"}],
        [SLICE | {"tid": 2}],
        [SLICE | {"tid": 1 << 31}],
        [SLICE | {"name": ""}],
        [SLICE | {"color": "red"}],
        [{key: value for key, value in SLICE.items() if key != "dur"}],
        [SLICE, SLICE | {"ts": 2.0}],
        [SLICE, INSIDE | {"ts": 0.5, "dur": 1.0}],
        [LANE],
        [LANE | {"name": "thread_colour"}],
        [LANE | {"tid": 2, "args": {}}],
    ],
)
def test_bad_traces(entries: list[dict[str, Any]]) -> None:
    """Each breaks one rule."""
    with pytest.raises((AssertionError, KeyError)):
        checked_trace(text_of(*entries))


def test_a_key_twice() -> None:
    """Readers differ in which one counts."""
    text = text_of(SLICE).replace('"dur"', '"ts": 1, "dur"')
    with pytest.raises(AssertionError, match="a key twice"):
        checked_trace(text)
