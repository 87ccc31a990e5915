"""The event stream: every event comes back equal from its line, and a reader survives any line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.json_schemas import checked

from ingot_build_rules.engine.events.event_lines import event_line, read_events, read_timed_events
from ingot_build_rules.engine.events.events import (
    ActionFinished,
    ActionQueued,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Event,
    Message,
    TargetFinished,
)

_TEXT = st.text(max_size=20)
_SECONDS = st.floats(min_value=0, max_value=1e9)
_NUMBERS = st.integers(min_value=0, max_value=2**40)
_NAMES = st.lists(_TEXT, max_size=3).map(tuple)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(BuildStarted, _NAMES, st.integers(1, 64)),
    st.builds(ActionQueued, _NUMBERS, _TEXT, _TEXT),
    st.builds(ActionStarted, _NUMBERS, _TEXT, _TEXT),
    st.builds(
        ActionFinished,
        *(
            _NUMBERS,
            _TEXT,
            _TEXT,
            st.sampled_from(["ran", "hit", "failed"]),
            _SECONDS,
            _TEXT,
            _TEXT,
        ),
        needs=st.lists(_NUMBERS, max_size=3).map(tuple),
    ),
    st.builds(
        TargetFinished, _TEXT, st.sampled_from(["built", "unchanged", "failed", "skipped"]), _TEXT
    ),
    st.builds(Message, st.sampled_from(["note", "warning", "error"]), _TEXT),
    st.builds(
        BuildFinished,
        st.dictionaries(
            _TEXT, st.fixed_dictionaries({"ran": _NUMBERS, "hit": _NUMBERS}), max_size=3
        ),
        *(_SECONDS, _NAMES, _NAMES),
    ),
)


@given(st.lists(EVENTS, max_size=10))
def test_events_come_back_equal(events: list[Event]) -> None:
    """A replay gives the very events, the summary included, one per line."""
    lines = [event_line(event, index / 7) for index, event in enumerate(events)]
    assert all(checked("event", line) for line in lines)
    assert list(read_events(lines)) == events
    assert [seconds for seconds, _ in read_timed_events(lines)] == [
        round(i / 7, 6) for i in range(len(events))
    ]


def test_a_newer_kind_is_skipped_with_a_note_and_new_fields_are_ignored() -> None:
    """A reader of today reads a stream of tomorrow as far as it knows it."""
    old = json.loads(event_line(BuildStarted(("a",), 2), 0.5))
    lines = [
        json.dumps(old | {"version": 9, "host": "there"}),
        '{"version":9,"time_seconds":1.5,"kind":"action_slept","number":3}',
    ]
    started, note = read_events(lines)
    assert started == BuildStarted(("a",), 2)
    assert note == Message(
        "note", "an event of kind 'action_slept' (version 9) is newer than this reader"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"version":1,"time_seconds":0', "Expecting"),
        ("[]", "expected a JSON object"),
        ("[" * 100_000, "line 1"),
        ('{"version":1,"time_seconds":0,"kind":7}', "expected a text, got 7"),
        ('{"version":1,"time_seconds":NaN,"kind":"message"}', "expected seconds, got nan"),
        ('{"version":1,"time_seconds":0,"kind":"message","level":"note"}', "message has no text"),
        (
            '{"version":1,"time_seconds":0,"kind":"message","level":"loud","text":""}',
            "expected one of note, warning, error, got 'loud'",
        ),
        (
            '{"version":1,"time_seconds":0,"kind":"build_started","targets":"a","jobs":1}',
            "expected a list, got 'a'",
        ),
        (
            '{"version":1,"time_seconds":0,"kind":"build_started","targets":[],"jobs":true}',
            "expected a whole number, got True",
        ),
        (
            '{"version":1,"time_seconds":0,"kind":"build_finished","rules":{"a":1},"seconds":0,"failed":[],"built":[]}',
            "expected a table, got 1",
        ),
    ],
)
def test_a_damaged_line_is_skipped_with_a_warning(line: str, words: str) -> None:
    """A builder that died in the middle of a line, or a foreign file, never ends a replay."""
    good = event_line(Message("note", "after"), 2)
    warning, after = read_events([line, good])
    assert isinstance(warning, Message)
    assert warning.level == "warning"
    assert words in warning.text
    assert after == Message("note", "after")


def test_empty_lines_are_nothing() -> None:
    """A stream may end with line breaks."""
    assert list(read_events(["", "\n"])) == []
