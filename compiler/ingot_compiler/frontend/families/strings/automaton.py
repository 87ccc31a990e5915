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
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ingot_compiler.frontend.families.strings.copies import Copies, Found
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
_WORK_MAX = 1 << 22  # states and ranges that are looked at for a table: some seconds
_REPEATS_MAX = 1000  # as in RE2
_BLOCKS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, _LAST))
_CATEGORIES = {
    "CATEGORY_DIGIT": ((48, 57),),
    "CATEGORY_SPACE": ((9, 10), (12, 13), (32, 32)),
    "CATEGORY_WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
}
"""The ranges of categories, of ASCII alone, as in RE2."""
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
    return table_of(*states_of(pattern))


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


@dataclass(frozen=True, slots=True)
class Closed:
    """States with all that need no byte from there; ``following``: those behind a byte of each
    range of ``States.cuts``."""

    states: Set[int]
    following: Sequence[tuple[int, ...]]


@dataclass(slots=True)
class States:
    """States with ranges of bytes between them; ``free``: next states that need no byte, each with
    the place where it may follow, "" for anywhere; ``places``: all of these; ``work``: how many
    states and ranges were looked at."""

    steps: list[list[tuple[int, int, int]]] = field(
        default_factory=list[list[tuple[int, int, int]]]
    )
    free: list[list[tuple[str, int]]] = field(default_factory=list[list[tuple[str, int]]])
    places: set[str] = field(default_factory=lambda: {""})
    copies: Copies = field(default_factory=Copies)
    work: int = 0
    _cuts: list[int] = field(default_factory=list[int])
    _of: tuple[int, ...] = ()
    _closed: dict[frozenset[str], Closed] = field(default_factory=dict[frozenset[str], "Closed"])

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
            self.places.add(_PLACES[str(argument)])
            return end
        raise PatternError(f"{code.lower().replace('_', ' ')} is not supported")

    def repeat(self, argument: Any, start: int, flags: int) -> int:
        """Something several times."""
        least, most, inner = argument
        is_open = most == codes.MAXREPEAT
        if max(int(least), 0 if is_open else int(most)) > _REPEATS_MAX:
            raise PatternError(f"more than {_REPEATS_MAX} repetitions")
        if _is_nothing(inner):
            least = 0  # those that there must be may be nothing
        for _ in range(least):
            start = self.sequence(inner, start, flags)
        end = self.new()
        self.free[start].append(("", end))
        if is_open:
            again = self.new()
            self.free[start].append(("", again))
            behind = self.sequence(inner, again, flags)
            self.free[behind] += [("", again), ("", end)]
        copies: list[range] = []
        for _ in range(0 if is_open else int(most) - int(least)):
            first = len(self.steps)
            start = self.sequence(inner, start, flags)
            self.free[start].append(("", end))
            copies.append(range(first, len(self.steps)))
        self.copies.add(copies)
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

    def closed(self, states: tuple[int, ...], before: str, behind: str) -> Closed:
        """What can be reached; ``before`` and ``behind``: what is next to the place, "word" or
        "other", nothing at the ends."""
        places = {"", "no boundary" if (before == "word") == (behind == "word") else "boundary"}
        places |= {name for name, side in (("start", before), ("end", behind)) if not side}
        seen = frozenset(places & self.places)
        if states != self._of:
            self._of, self._closed = states, {}
        if seen not in self._closed:
            self._closed[seen] = self._all_from(states, seen)
        return self._closed[seen]

    def _all_from(self, states: Iterable[int], places: Set[str]) -> Closed:
        found = Found(self.copies)
        waiting = [state for state in states if found.add(state)]
        while waiting:
            following = self.free[waiting.pop()]
            self.spend(1 + len(following))
            waiting += [state for place, state in following if place in places and found.add(state)]
        return Closed(found.kept, self._following(found.kept))

    def _following(self, states: Iterable[int]) -> list[tuple[int, ...]]:
        """The states behind a byte of each range, in the order of their numbers, without needless
        ones."""
        found: list[set[int]] = [set() for _ in self.cuts[:-1]]
        for state in states:
            for first, last, to in self.steps[state]:
                places = range(bisect_left(self.cuts, first), bisect_left(self.cuts, last + 1))
                self.spend(len(places))
                for place in places:
                    found[place].add(to)
        return list(map(self.copies.needed, found))

    @property
    def cuts(self) -> list[int]:
        """Where ranges of bytes begin that no state and no boundary of words tells apart, and 256;
        when all states are there."""
        if not self._cuts:
            steps = (step for own in self.steps for step in own)
            edges = [edge for low, high, _ in steps for edge in (low, high + 1)]
            words = [edge for low, high in _WORD for edge in (low, high + 1)]
            self._cuts = sorted({0, 256, *edges, *(words if self.has_boundaries else ())})
        return self._cuts

    def kind_of(self, byte: int) -> str:
        """What a byte is to the boundaries of the pattern: all are alike where it has none."""
        is_letter = any(low <= byte <= high for low, high in _WORD)
        return "word" if self.has_boundaries and is_letter else "other"

    @property
    def has_boundaries(self) -> bool:
        """Whether it matters what is a letter of a word."""
        return not self.places.isdisjoint(("boundary", "no boundary"))

    def spend(self, work: int) -> None:
        """Count what was looked at.

        Raises:
            PatternError: it is more than a table is worth.
        """
        self.work += work
        if self.work > _WORK_MAX:
            raise PatternError(f"its table takes more than {_WORK_MAX} steps to make")


def _is_nothing(items: Any) -> bool:
    """Whether parts may be nothing, wherever they stand."""
    for code, argument in items:
        name = str(code)
        may_be_nothing = name in ("MAX_REPEAT", "MIN_REPEAT") and not argument[0]
        if not may_be_nothing and not any(map(_is_nothing, _inner(name, argument))):
            return False
    return True


def _inner(name: str, argument: Any) -> Sequence[Any]:
    """The parts inside of a part, one of which it is."""
    if name in ("MAX_REPEAT", "MIN_REPEAT", "SUBPATTERN"):
        return (argument[-1],)
    return argument[1] if name == "BRANCH" else ()


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


def table_of(states: States, end: int) -> Automaton:
    """Sets of states as the states of a table."""
    kinds = list(map(states.kind_of, states.cuts[:-1]))
    numbers: dict[Key, int] = {((0,), ""): 0}
    rows: list[list[int]] = []
    accepts: list[int] = []
    for key in growing(numbers):
        row = [numbers[key]]
        for place, kind in enumerate(kinds):
            following = states.closed(*key, kind).following[place], kind
            row.append(numbers.setdefault(following, len(numbers)))
        rows.append(row)
        accepts.append(int(end in states.closed(*key, "").states))
    flat = tuple(state for row in rows for state in row)
    return Automaton(classes_of(states.cuts), len(states.cuts), flat, tuple(accepts))


def classes_of(cuts: Sequence[int]) -> tuple[int, ...]:
    """The number of the range of each byte, after 0 for the end of the string."""
    return (0, *(sum(cut <= byte for cut in cuts) for byte in range(256)))


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
