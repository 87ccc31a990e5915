"""Patterns whose repetitions stand inside one another: what they match, and what a table of them
takes, counted in states and in steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Set

import numpy as np
import pytest
from tests.harness.pattern_tables import accepts, longest

from ingot_compiler.frontend.families.strings.automaton import (
    PatternError,
    automaton,
    states_of,
    table_of,
)
from ingot_compiler.frontend.families.strings.pattern_search import search_table

_STEPS_A_STATE = 24
Matcher = Callable[[str, int], Set[int]]
"""From a text and a place in it to where a part of a pattern may end that begins there."""


@pytest.mark.parametrize("n", [2, 9, 31, 63])
@pytest.mark.parametrize(
    "pattern", ["(a{{0,{n}}}){{0,{n}}}", "(a{{1,{n}}}){{0,{n}}}", "((a?){{{n}}}){{{n}}}"]
)
def test_the_smallest_table(pattern: str, n: int) -> None:
    """A state for each number of letters up to the square, and one for what does not match; each
    takes as many steps as in a small table."""
    states, end = states_of(pattern.format(n=n))
    table = table_of(states, end)
    assert len(table.accepts) == n * n + 2
    assert states.work <= _STEPS_A_STATE * len(table.accepts)


@pytest.mark.broad
@pytest.mark.parametrize("n", [64, 120])
def test_too_large_a_table(n: int) -> None:
    """It is refused when it is found to be, not when it would be done."""
    states, end = states_of(f"(a{{0,{n}}}){{0,{n}}}")
    with pytest.raises(PatternError, match="more than 4096 states"):
        table_of(states, end)
    assert states.work <= 2 * _STEPS_A_STATE * 4096


def test_too_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of few states that each stand for many is refused when they take too long."""
    monkeypatch.setattr("ingot_compiler.frontend.families.strings.automaton._WORK_MAX", 10_000)
    with pytest.raises(PatternError, match="more than 10000 steps"):
        automaton("a?" * 90 + "a" * 90)


# ---- what they match -----------------------------------------------------------------------------


def _character(letters: str) -> Matcher:
    return lambda text, at: {at + 1} if text[at : at + 1] and text[at] in letters else set()


def _place(text: str) -> Matcher:
    def boundary(given: str, at: int) -> bool:
        sides = given[at - 1 : at] if at else "", given[at : at + 1]
        return len({side.isalnum() for side in sides}) == 2

    holds: dict[str, Callable[[str, int], bool]] = {
        "^": lambda _, at: at == 0,
        "$": lambda given, at: at == len(given),
        "\\b": boundary,
        "\\B": lambda given, at: not boundary(given, at),
    }
    return lambda given, at: {at} if holds[text](given, at) else set()


def _behind(first: Matcher, second: Matcher) -> Matcher:
    return lambda text, at: {end for place in first(text, at) for end in second(text, place)}


def _either(one: Matcher, other: Matcher) -> Matcher:
    return lambda text, at: one(text, at) | other(text, at)


def _repeated(part: Matcher, least: int, most: int | None) -> Matcher:
    def ends(text: str, at: int) -> Set[int]:
        reached, found = {at}, set[int]()
        # More rounds than the text has places reach nothing new.
        rounds = least + len(text) + 1 if most is None else most
        for number in range(rounds + 1):
            found |= reached if number >= least else set()
            reached = {end for place in reached for end in part(text, place)}
        return found

    return ends


class _Patterns:
    """Random patterns, and what they mean."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def draw(self, depth: int) -> tuple[str, Matcher]:
        """A pattern of at most so many repetitions inside one another."""
        kind = int(self.random.integers(0, 10)) if depth else 9
        if kind < 6:
            return self.repeated(*self.draw(depth - 1))
        if kind < 8:
            (one, ends), (other, others) = self.draw(depth - 1), self.draw(depth - 1)
            return one + other, _behind(ends, others)
        if kind < 9:
            (one, ends), (other, others) = self.draw(depth - 1), self.draw(depth - 1)
            return f"(?:{one}|{other})", _either(ends, others)
        if self.random.random() < 0.15:
            text = str(self.random.choice(["^", "$", "\\b", "\\B"]))
            return f"(?:{text})", _place(text)
        letters = str(self.random.choice(["a", "b", "ab", "a."]))
        return f"[{letters}]", _character(letters)

    def repeated(self, text: str, part: Matcher) -> tuple[str, Matcher]:
        """It several times."""
        least = int(self.random.integers(0, 3))
        if self.random.random() < 0.2:
            return f"(?:{text}){{{least},}}", _repeated(part, least, None)
        most = least + int(self.random.integers(0, 4))
        return f"(?:{text}){{{least},{most}}}", _repeated(part, least, most)


_TEXTS = ["".join(letters) for n in range(6) for letters in itertools.product("ab.", repeat=n)][::3]


@pytest.mark.parametrize("seed", range(24))
def test_matches(seed: int) -> None:
    """Tables say what the parts of a pattern say, of whole texts and of the longest part from a
    place on."""
    pattern, ends = _Patterns(seed).draw(4)
    table, search = automaton(pattern), search_table(pattern)
    for text in _TEXTS:
        assert accepts(table, text.encode()) == (len(text) in ends(text, 0)), (pattern, text)
        for start in range(len(text)):
            end = max(ends(text, start), default=-1)
            assert longest(search, text.encode(), start) == end, (pattern, text, start)
