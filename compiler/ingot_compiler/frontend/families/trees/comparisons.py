"""Branches of all modes as branches that ask one question: is this column at most that number?

In: an ensemble. Out: ``Tests``. Not done here: the order of nodes in tables (``tables``).

``x < t`` is ``x <= before(t)``, where ``before`` is the next smaller number. NaN goes the way that
its branch says.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from ingot_compiler.frontend.families.trees.ensemble import (
    Bools,
    Branches,
    Ensemble,
    Floats,
    Ints,
    Mode,
    require,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Tests:
    """One entry for each branch: rows go the ``first`` way where the column ``feature`` is at most
    ``limit``, which is NaN where no number is; NaN goes there if ``nan_first``. Ways are as in
    ``Branches``."""

    feature: Ints
    nan_first: Bools
    limit: Floats
    first: Ints
    second: Ints


def before(values: Floats) -> Floats:
    """The next smaller numbers; NaN, which nothing is at most, where there is none."""
    smaller = np.nextafter(values, -np.inf)
    return cast("Floats", np.where(values == -np.inf, np.nan, smaller))


def tests_of(ensemble: Ensemble) -> Tests:
    """Tests in the order of the branches; those that several numbers need stand behind them."""
    plain = _without_sets(ensemble)
    _require_numbers(plain)
    plain = _without_equals(plain)
    mode, value = plain.mode, plain.value
    below = np.isin(mode, (Mode.LEQ, Mode.LT))
    # ``GT`` is the opposite of ``LEQ``, ``GTE`` of ``LT``: for NaN, too, if its way is the same.
    first, second = (
        np.where(below, plain.first, plain.second),
        np.where(below, plain.second, plain.first),
    )
    strict = np.isin(mode, (Mode.LT, Mode.GTE))
    limit = np.where(strict, before(value), value)
    return Tests(plain.feature, plain.nan_first == below, limit, first, second)


def _require_numbers(branches: Branches) -> None:
    wrong = np.flatnonzero(np.isnan(branches.value) & (branches.mode != Mode.MEMBER))
    at = int(wrong[0]) if len(wrong) else 0
    require(not len(wrong), "values of branches to be numbers", f"NaN in branch {at}")


def _without_equals(branches: Branches) -> Branches:
    """``x == t`` is ``x <= t`` and not ``x < t``; ``x != t`` its opposite."""
    is_equal = branches.mode == Mode.EQ
    chosen = np.flatnonzero(is_equal | (branches.mode == Mode.NEQ))
    if not len(chosen):
        return branches
    same = is_equal[chosen]
    hit = np.where(same, branches.first[chosen], branches.second[chosen])
    miss = np.where(same, branches.second[chosen], branches.first[chosen])
    nan_hit = branches.nan_first[chosen] == same
    mode, first, second = branches.mode.copy(), branches.first.copy(), branches.second.copy()
    nan_first = branches.nan_first.copy()
    added = np.arange(len(branches), len(branches) + len(chosen))
    mode[chosen], first[chosen], second[chosen], nan_first[chosen] = Mode.LEQ, added, miss, nan_hit
    strict = np.full(len(chosen), Mode.LT, np.uint8)
    no = np.zeros(len(chosen), np.bool_)
    more = Branches(branches.feature[chosen], branches.value[chosen], strict, miss, hit, no)
    own = Branches(branches.feature, branches.value, mode, first, second, nan_first)
    return _joined(own, more)


def _joined(one: Branches, other: Branches) -> Branches:
    names = ("feature", "value", "mode", "first", "second", "nan_first")
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return Branches(*(np.concatenate(pair) for pair in pairs))


def _without_sets(ensemble: Ensemble) -> Branches:
    """A search among the sorted numbers of a set, each of which is compared by a branch."""
    branches = ensemble.branches
    members = np.flatnonzero(branches.mode == Mode.MEMBER)
    if not len(members):
        return branches
    search = _Search(len(branches))
    first, mode, value = branches.first.copy(), branches.mode.copy(), branches.value.copy()
    for branch, members_of in zip(members.tolist(), ensemble.sets, strict=True):
        hit, miss = int(branches.first[branch]), int(branches.second[branch])
        numbers = np.unique(members_of).tolist()
        way = (int(branches.feature[branch]), hit, miss)
        # NaN takes its way here; all numbers go on to the search.
        first[branch] = search.add(numbers, way) if numbers else miss
        mode[branch], value[branch] = Mode.LEQ, np.inf
    nan_hit = branches.nan_first[members]
    second = branches.second.copy()
    second[members] = np.where(nan_hit, branches.first[members], branches.second[members])
    nan_first = branches.nan_first.copy()
    nan_first[members] = False
    own = Branches(branches.feature, value, mode, first, second, nan_first)
    return _joined(own, search.branches())


class _Search:
    """Branches that are added behind others."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._rows: list[tuple[int, float, int, int, int]] = []

    def add(self, numbers: list[float], way: tuple[int, int, int]) -> int:
        """A search for a feature among sorted numbers; where it begins. ``way``: the feature, and
        where it goes if it is one of them, and if not."""
        feature, hit, miss = way
        place = len(self._rows)
        self._rows.append((0, 0.0, 0, 0, 0))
        middle = len(numbers) // 2
        if len(numbers) == 1:
            self._rows[place] = (feature, numbers[0], Mode.EQ, hit, miss)
        else:
            low = self.add(numbers[:middle], way)
            high = self.add(numbers[middle:], way)
            self._rows[place] = (feature, numbers[middle], Mode.LT, low, high)
        return self._start + place

    def branches(self) -> Branches:
        """All that were added."""
        feature, value, mode, first, second = (
            zip(*self._rows, strict=True) if self._rows else [()] * 5
        )
        count = len(self._rows)
        return Branches(
            np.array(feature, np.int64), np.array(value, np.float64), np.array(mode, np.uint8),
            np.array(first, np.int64), np.array(second, np.int64), np.zeros(count, np.bool_),
        )  # fmt: skip
