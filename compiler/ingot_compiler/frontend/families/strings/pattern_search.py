"""Where a regular expression matches inside of strings: from the left, none overlapping another,
none empty, of the matches at one place the longest.

In: a pattern; rows of bytes with their lengths. Out: ``SearchTable``; ``Matches``, begins and ends
in the order in which they are found. Not done here: what a pattern may have (``automaton``).

A row is read byte by byte; where no state is left, its last match is taken and the search goes on
behind it, or one byte behind its start if there was none.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, cast, full, iota, reduce, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_loop
from ingot_compiler.frontend.families.strings.automaton import (
    Key,
    classes_of,
    growing,
    states_of,
)
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.dims import dim_product
from ingot_runtime.lazy_dataclass import dataclass

_DEAD: Key = ((), "")


@dataclass(frozen=True, slots=True)
class SearchTable:
    """``classes``: of the end of the string, then of each byte. Of each state and class: ``table``,
    the next state, 0 where none is left; ``matches``, 1 where a match ends before that byte.
    ``starts``: the first state behind a byte of each class."""

    classes: tuple[int, ...]
    class_count: int
    table: tuple[int, ...]
    matches: tuple[int, ...]
    starts: tuple[int, ...]


def search_table(pattern: str) -> SearchTable:
    """The table of a pattern.

    Raises:
        PatternError: it is wrong, or has more than a table can do.
    """
    states, end = states_of(pattern)
    cuts = states.cuts
    kinds = ["", *map(states.kind_of, cuts[:-1])]
    numbers: dict[Key, int] = {_DEAD: 0}
    starts = [numbers.setdefault(((0,), kind), len(numbers)) for kind in kinds]
    table: list[int] = []
    matches: list[int] = []
    for key in growing(numbers):
        for place, kind in enumerate(kinds):
            own = states.closed(*key, kind)
            reached = own.following[place - 1] if place else ()
            following = (reached, kind) if reached else _DEAD
            table.append(numbers.setdefault(following, len(numbers)))
            matches.append(int(end in own.states))
    return SearchTable(classes_of(cuts), len(cuts), tuple(table), tuple(matches), tuple(starts))


@dataclass(frozen=True, slots=True)
class Matches:
    """``begin``, ``end``: i64[steps, rows], -1 where no match is found in a step. ``behind``:
    i64[rows], the end of the last match."""

    begin: int
    end: int
    behind: int


def find_matches(
    context: OpContext, rows: int, lengths: int, pattern: SearchTable, *, gaps: bool = False
) -> Matches:
    """The matches in rows that are longer than their strings, or the ``gaps`` before them."""
    count, width = context.shape_of(rows)
    classes = written(context, "i64", pattern.classes)
    byte = context.add("gather", classes, binary_scalar(context, "add", rows, 1), axis=0)
    flat = reshape(context, byte, (dim_product((count, width)),))
    first = context.add("mul", iota(context, count), context.integers([width]))
    table, matches, starts = (
        written(context, "i64", part) for part in (pattern.table, pattern.matches, pattern.starts)
    )

    def at(place: int) -> int:
        return context.add("gather", flat, context.add("add", first, place), axis=0)

    def fill(inputs: Sequence[int]) -> Sequence[int]:
        _, _, place, start, state, last, behind = inputs
        row = binary_scalar(context, "mul", state, pattern.class_count)
        index = context.add("add", row, at(place))
        matched = binary_scalar(context, "equal", context.add("gather", matches, index, axis=0), 1)
        last = context.add("select", matched, place, last)
        following = context.add("gather", table, index, axis=0)
        goes = context.add("less", context.scalar("i64", 0), following)
        found = context.add(
            "logical_and", context.add("logical_not", goes), context.add("less", start, last)
        )
        onward = context.add(
            "select",
            found,
            last,
            context.add("min", binary_scalar(context, "add", start, 1), lengths),
        )
        before = at(binary_scalar(context, "max", binary_scalar(context, "add", onward, -1), 0))
        again = context.add("gather", starts, before, axis=0)
        none = context.scalar("i64", -1)
        results = [
            context.add("select", goes, kept, new)
            for kept, new in (
                (binary_scalar(context, "add", place, 1), onward),
                (start, onward),
                (following, again),
                (last, none),
            )
        ]
        begin = context.add("select", found, behind if gaps else start, none)
        end = context.add("select", found, start if gaps else last, none)
        behind = context.add("select", found, last, behind)
        return _unfinished(context, results[1], lengths), *results, behind, begin, end

    zero, none = full(context, "i64", 0, (count,)), full(context, "i64", -1, (count,))
    state = full(context, "i64", pattern.starts[0], (count,))
    going = _unfinished(context, zero, lengths)
    *_, behind, begin, end = build_loop(
        context, (None, None), (going, None), (zero, zero, state, none, zero), fill
    )
    return Matches(begin, end, behind)


def _unfinished(context: OpContext, start: int, lengths: int) -> int:
    """Whether a row has bytes left."""
    left = cast(context, context.add("less", start, lengths), "i64")
    return context.add("less", context.scalar("i64", 0), reduce(context, left, "sum", (0,)))
