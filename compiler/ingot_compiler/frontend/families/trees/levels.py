"""How long the ways through trees are, and in which tree each leaf is.

In: branches and roots. Out: ``Levels``; ``TreeError`` for ways that never end. Not done here: what
branches compare.

Branches may be reached from several others: converters of categorical splits write such trees.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.frontend.families.trees.ensemble import Branches, Ensemble, Ints, TreeError
from ingot_runtime.lazy_dataclass import dataclass

_FEW = 32  # branches of a level, up to which a loop is faster than arrays
_NONE, _SEVERAL = -1, -2


@dataclass(frozen=True, slots=True)
class Levels:
    """``depth``: branches on the longest way; ``tree``: of each leaf, -1 where no way ends, -2
    where those of several trees do."""

    depth: int
    tree: Ints


def levels(ensemble: Ensemble) -> Levels:
    """Take away branches that no branch left leads to, level by level, until none is left."""
    branches = ensemble.branches
    walk = _Walk(branches, *_starts(ensemble))
    at, depth, left = np.flatnonzero(walk.waiting == 0), 0, len(branches)
    while len(at):
        depth, left = depth + 1, left - len(at)
        at = walk.few(at) if len(at) <= _FEW else walk.many(at)
    if left:
        inside = int(np.flatnonzero(walk.waiting > 0)[0])
        raise TreeError("ways that end in leaves", f"one that returns to branch {inside}")
    return Levels(depth, walk.tree[len(branches) :])


def _starts(ensemble: Ensemble) -> tuple[Ints, Ints]:
    """How many ways lead to each branch, and the trees of roots, of branches and then of leaves."""
    branches = ensemble.branches
    ways = np.concatenate([branches.first, branches.second])
    waiting = np.bincount(ways[ways >= 0], minlength=len(branches))
    tree = np.full(len(branches) + ensemble.leaf_count, _NONE, np.int64)
    roots = _place(ensemble.roots, len(branches))
    tree[roots] = np.arange(len(roots))
    again = np.ones(len(roots), np.bool_)
    again[np.unique(roots, return_index=True)[1]] = False
    tree[roots[again]] = _SEVERAL
    return waiting, tree


def _place(ways: Ints, branch_count: int) -> Ints:
    """Branches, then leaves."""
    return np.where(ways >= 0, ways, branch_count + ~ways)


@dataclass(frozen=True, slots=True)
class _Walk:
    """``waiting``: how many ways still lead to each branch; ``tree``: as in ``_starts``."""

    branches: Branches
    waiting: Ints
    tree: Ints

    def many(self, at: Ints) -> Ints:
        """Take away the branches ``at``; return those that nothing leads to any more."""
        ways = np.concatenate([self.branches.first[at], self.branches.second[at]])
        owner, place = np.tile(self.tree[at], 2), _place(ways, len(self.branches))
        place, owner = place[owner != _NONE], owner[owner != _NONE]
        before = self.tree[place]
        self.tree[place] = owner
        differs = (before != _NONE) & (before != owner) | (self.tree[place] != owner)
        self.tree[place[differs]] = _SEVERAL
        reached, counts = np.unique(ways[ways >= 0], return_counts=True)
        self.waiting[reached] -= counts
        free: Ints = reached[self.waiting[reached] == 0]
        return free

    def few(self, at: Ints) -> Ints:
        """Take away the branches ``at`` one by one; return those that nothing leads to any more."""
        free: list[int] = []
        first, second, count = self.branches.first, self.branches.second, len(self.branches)
        for branch in at.tolist():
            owner = int(self.tree[branch])
            for way in (int(first[branch]), int(second[branch])):
                place = way if way >= 0 else count + ~way
                if owner != _NONE:
                    before = self.tree[place]
                    self.tree[place] = owner if before in (_NONE, owner) else _SEVERAL
                if way >= 0:
                    self.waiting[way] -= 1
                    if self.waiting[way] == 0:
                        free.append(way)
        return np.array(free, np.int64)
