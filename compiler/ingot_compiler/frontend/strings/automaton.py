"""A regular expression as a table of states and bytes of UTF-8.

In: a pattern, by the syntax that RE2 and Python's ``re`` have in common. Out: ``Automaton``, which
says whether a whole string matches. Not done here: matches inside of a string (``pattern_search``);
groups that are referred to, looking ahead or behind, properties of Unicode (refused, as RE2 refuses
some of them).

The parts of the pattern become states with ranges of bytes between them (a range of characters is a
few sequences of ranges of bytes), and sets of such states, with what the byte before was, become
the states of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:  # what the stubs call the two modules, which have no public names
    import sre_constants as codes
    import sre_parse as parser
else:
    from re import _constants as codes
    from re import _parser as parser

_CHARACTERS = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_LAST = 0x10FFFF
_STATES_MAX = 4096
_REPEATS_MAX = 1000  # as in RE2
_BLOCKS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, _LAST))
_CATEGORIES = {
    "CATEGORY_DIGIT": ((48, 57),),
    "CATEGORY_SPACE": ((9, 10), (12, 13), (32, 32)),
    "CATEGORY_WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
}
"""Of ASCII alone, as in RE2."""
_WORD = _CATEGORIES["CATEGORY_WORD"]
_PLACES = {
    "AT_BEGINNING": "start", "AT_BEGINNING_STRING": "start", "AT_END": "end", "AT_END_STRING": "end",
    "AT_BOUNDARY": "boundary", "AT_NON_BOUNDARY": "no boundary",
}  # fmt: skip
Ranges = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """A pattern that has no table, with the reason."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """``classes``: of the end of the string, then of each byte; ``table``: of each state and class
    the next state; ``accepts``: 1 for states in which a string may end. The first state is 0."""

    classes: tuple[int, ...]
    class_count: int
    table: tuple[int, ...]
    accepts: tuple[int, ...]


def automaton(pattern: str) -> Automaton:
    """The table of a pattern.

    Raises:
        PatternError: it is wrong, or has more than a table can do.
    """
    return _table(*states_of(pattern))


def states_of(pattern: str) -> tuple[States, int]:
    """The states of a pattern, which begins in the first one, and the one that it ends in.

    Raises:
        PatternError: it is wrong, or has more than a table can do.
    """
    tree, states = _parsed(pattern), States()
    return states, states.sequence(tree, states.new(), tree.state.flags)


def is_one_character(pattern: str) -> bool:
    """Whether a pattern stands for single characters.

    Raises:
        PatternError: it is wrong.
    """
    tree = _parsed(pattern)
    return len(tree) == 1 and str(tree[0][0]) in _CHARACTERS


def _parsed(pattern: str) -> Any:
    try:
        return parser.parse(pattern, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(str(error)) from None


@dataclass(slots=True)
class States:
    """States with ranges of bytes between them; ``free``: next states that need no byte, each with
    the place where it may follow, "" for anywhere."""

    steps: list[list[tuple[int, int, int]]] = field(
        default_factory=list[list[tuple[int, int, int]]]
    )
    free: list[list[tuple[str, int]]] = field(default_factory=list[list[tuple[str, int]]])

    def new(self) -> int:
        """One more."""
        if len(self.steps) > 16 * _STATES_MAX:
            raise PatternError("it is too large")
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def sequence(self, items: Any, start: int, flags: int) -> int:
        """The state behind some parts."""
        for code, argument in items:
            start = self.part(str(code), argument, start, flags)
        return start

    def part(self, code: str, argument: Any, start: int, flags: int) -> int:
        """The state behind one part."""
        if code in _CHARACTERS:
            return self.characters(_ranges(code, argument, flags), start)
        if code in ("MAX_REPEAT", "MIN_REPEAT"):
            return self.repeat(argument, start, flags)
        if code == "SUBPATTERN":
            _, added, removed, inner = argument
            return self.sequence(inner, start, (flags | added) & ~removed)
        if code == "BRANCH":
            end = self.new()
            for branch in argument[1]:
                self.free[self.sequence(branch, start, flags)].append(("", end))
            return end
        if code == "AT" and str(argument) in _PLACES and not flags & re.MULTILINE:
            end = self.new()
            self.free[start].append((_PLACES[str(argument)], end))
            return end
        raise PatternError(f"{code.lower().replace('_', ' ')} is not supported")

    def repeat(self, argument: Any, start: int, flags: int) -> int:
        """Something several times."""
        least, most, inner = argument
        is_open = most == codes.MAXREPEAT
        if max(int(least), 0 if is_open else int(most)) > _REPEATS_MAX:
            raise PatternError(f"more than {_REPEATS_MAX} repetitions")
        for _ in range(least):
            start = self.sequence(inner, start, flags)
        end = self.new()
        self.free[start].append(("", end))
        if is_open:
            again = self.new()
            self.free[start].append(("", again))
            behind = self.sequence(inner, again, flags)
            self.free[behind] += [("", again), ("", end)]
        for _ in range(0 if is_open else int(most) - int(least)):
            start = self.sequence(inner, start, flags)
            self.free[start].append(("", end))
        return end

    def characters(self, ranges: Ranges, start: int) -> int:
        """One of some characters."""
        end = self.new()
        for first, last in ranges:
            for low, high in _BLOCKS:
                if first <= high and last >= low:
                    pair = (chr(max(first, low)).encode(), chr(min(last, high)).encode())
                    for steps in _byte_ranges(*pair):
                        self.chain(steps, start, end)
        return end

    def chain(self, steps: Sequence[tuple[int, int]], start: int, end: int) -> None:
        """One byte after the other."""
        for low, high in steps[:-1]:
            state = self.new()
            self.steps[start].append((low, high, state))
            start = state
        self.steps[start].append((*steps[-1], end))

    def closed(self, states: Iterable[int], before: str, behind: str) -> set[int]:
        """States with all that need no byte from there; ``before`` and ``behind``: what is next to
        the place, "word" or "other", nothing at the ends."""
        places = {"", "no boundary" if (before == "word") == (behind == "word") else "boundary"}
        places |= {name for name, side in (("start", before), ("end", behind)) if not side}
        found, waiting = set(states), list(states)
        while waiting:
            for place, state in self.free[waiting.pop()]:
                if place in places and state not in found:
                    found.add(state)
                    waiting.append(state)
        return found

    def after(self, states: Iterable[int], byte: int) -> tuple[int, ...]:
        """The states behind a byte, in the order of their numbers."""
        steps = (step for state in states for step in self.steps[state])
        return tuple(sorted({to for first, last, to in steps if first <= byte <= last}))


def _byte_ranges(first: bytes, last: bytes) -> Iterator[list[tuple[int, int]]]:
    """Ranges of bytes, one after the other, that make up all texts between two of one length."""
    if len(first) == 1:
        yield [(first[0], last[0])]
        return
    low, high = b"\x80" * (len(first) - 1), b"\xbf" * (len(first) - 1)
    if first[0] == last[0]:
        for rest in _byte_ranges(first[1:], last[1:]):
            yield [(first[0], first[0]), *rest]
        return
    begin, end = first[0], last[0]
    if first[1:] != low:
        for rest in _byte_ranges(first[1:], high):
            yield [(begin, begin), *rest]
        begin += 1
    if last[1:] != high:
        for rest in _byte_ranges(low, last[1:]):
            yield [(end, end), *rest]
        end -= 1
    if begin <= end:
        yield [(begin, end), *((0x80, 0xBF) for _ in low)]


def _ranges(code: str, argument: Any, flags: int) -> Ranges:
    """The characters that a part stands for."""
    if code == "ANY":
        return ((0, _LAST),) if flags & re.DOTALL else _others(((10, 10),))
    if code == "LITERAL":
        return _in_both_cases(((argument, argument),), flags)
    if code == "NOT_LITERAL":
        return _others(_in_both_cases(((argument, argument),), flags))
    found: list[tuple[int, int]] = []
    is_negated = False
    for kind, value in argument:
        name = str(kind)
        if name == "NEGATE":
            is_negated = True
        elif name == "LITERAL":
            found.append((value, value))
        elif name == "RANGE":
            found.append(value)
        else:
            category = str(value)
            own = _CATEGORIES.get(category.replace("NOT_", ""))
            if name != "CATEGORY" or own is None:
                raise PatternError(f"{name.lower()} is not supported")
            found += _others(own) if "NOT_" in category else own
    ranges = _in_both_cases(tuple(found), flags)
    return _others(ranges) if is_negated else ranges


def _in_both_cases(ranges: Ranges, flags: int) -> Ranges:
    """Ranges, with letters of ASCII in the other case where the pattern ignores it."""
    if not flags & re.IGNORECASE:
        return ranges
    found = list(ranges)
    for first, last in ranges:
        if last > 127:
            raise PatternError("letters beyond ASCII whose case is ignored are not supported")
        for low, shift in ((65, 32), (97, -32)):
            begin, end = max(first, low), min(last, low + 25)
            if begin <= end:
                found.append((begin + shift, end + shift))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    """All other characters."""
    found: list[tuple[int, int]] = []
    start = 0
    for first, last in sorted(ranges):
        if start < first:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return (*found, (start, _LAST)) if start <= _LAST else tuple(found)


Key = tuple[tuple[int, ...], str]
"""States, and what the byte before them was."""


def _table(states: States, end: int) -> Automaton:
    """Sets of states as the states of a table."""
    cuts = cuts_of(states)
    numbers: dict[Key, int] = {((0,), ""): 0}
    rows: list[list[int]] = []
    accepts: list[int] = []
    for key in growing(numbers):
        row = [numbers[key]]
        for low in cuts[:-1]:
            following = _after(states, key, low)
            row.append(numbers.setdefault(following, len(numbers)))
        rows.append(row)
        accepts.append(int(end in states.closed(key[0], key[1], "")))
    flat = tuple(state for row in rows for state in row)
    return Automaton(classes_of(cuts), len(cuts), flat, tuple(accepts))


def cuts_of(states: States) -> list[int]:
    """Where ranges of bytes begin that no state and no boundary of words tells apart, and 256."""
    words = [place for low, high in _WORD for place in (low, high + 1)]
    edges = [edge for own in states.steps for low, high, _ in own for edge in (low, high + 1)]
    return sorted({0, 256, *words, *edges})


def classes_of(cuts: Sequence[int]) -> tuple[int, ...]:
    """The number of the range of each byte, after 0 for the end of the string."""
    return (0, *(sum(cut <= byte for cut in cuts) for byte in range(256)))


def kind_of(byte: int) -> str:
    """What a byte is to a boundary."""
    return "word" if any(low <= byte <= high for low, high in _WORD) else "other"


def _after(states: States, key: Key, byte: int) -> Key:
    """What follows by a byte."""
    kind = kind_of(byte)
    return states.after(states.closed(key[0], key[1], kind), byte), kind


def growing(numbers: dict[Key, int]) -> Iterator[Key]:
    """The keys of a table's states, which grow meanwhile.

    Raises:
        PatternError: they are too many.
    """
    at = 0
    while at < len(numbers):
        batch = list(numbers)[at:]
        at += len(batch)
        for key in batch:
            if len(numbers) > _STATES_MAX:
                raise PatternError(f"its table has more than {_STATES_MAX} states")
            yield key
