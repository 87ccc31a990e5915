"""Which states of a pattern make others needless: of the copies of a part that may be repeated so
and so often, a place in an early one leads to all that the same place in a later one leads to.

In: the states of each copy. Out: sets of states without those that others of them make needless. Not
done here: making copies (``automaton``).

Without this, one text would reach hundreds of states of `(a{0,30}){0,30}`, of which two say it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ingot_runtime.lazy_dataclass import dataclass

Numbers = tuple[int, ...]
"""The numbers of the copies that a state is in, from the innermost repetition outwards."""


@dataclass(slots=True)
class Copies:
    """``places``: of each state that has copies, that in all first copies, and its numbers."""

    places: dict[int, tuple[int, Numbers]] = field(default_factory=dict[int, tuple[int, Numbers]])

    def add(self, copies: Sequence[range]) -> None:
        """Equal copies of a part one behind the other, behind each of which the repetition may
        end; those inside of it are there already."""
        for number, copy in enumerate(copies):
            for first, state in zip(copies[0], copy, strict=True):
                root, inside = self.places.get(state, (state, ()))
                if number:
                    root = self.places[first][0]
                self.places[state] = root, (*inside, number)

    def needed(self, states: Iterable[int]) -> tuple[int, ...]:
        """The states without those that others of them make needless, in order."""
        found = Found(self)
        ordered = sorted(states, key=self._numbers)
        return tuple(sorted([state for state in ordered if found.add(state)]))

    def _numbers(self, state: int) -> Numbers:
        return self.places[state][1] if state in self.places else ()


@dataclass(slots=True)
class Found:
    """States that are found one by one; ``kept``: those that none before made needless."""

    copies: Copies
    kept: set[int] = field(default_factory=set[int])
    _numbers: dict[int, list[Numbers]] = field(default_factory=dict[int, list[Numbers]])

    def add(self, state: int) -> bool:
        """Whether a state is new, and none that was found makes it needless: no copy that it is in
        is earlier."""
        if state in self.kept:
            return False
        if state in self.copies.places:
            root, numbers = self.copies.places[state]
            others = self._numbers.setdefault(root, [])
            if any(_is_at_most(each, numbers) for each in reversed(others)):
                return False
            others.append(numbers)
        self.kept.add(state)
        return True


def _is_at_most(left: Numbers, right: Numbers) -> bool:
    return all(one <= other for one, other in zip(left, right, strict=True))
