"""The rows of leaves and branches that core ``walk_trees`` reads.

In: tests, what leaves say. Out: rows of u32 or u64. Not done here: features as keys (``tree_sums``).

Floats are compared as the unsigned integers that ``selection.sort_keys`` makes of features: a
comparison of integers takes a sixth of the time, and steps wait for nothing else. NaN is the
greatest of these keys; one more, and it is the least one, 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.families.trees.comparisons import Tests
from ingot_compiler.frontend.families.trees.ensemble import Floats, Ints
from ingot_compiler.ir.ops.walk_trees import FIELDS
from ingot_runtime.lazy_dataclass import dataclass

_Real = type[np.float32] | type[np.float64]
_WHOLE: dict[_Real, type[np.unsignedinteger[Any]]] = {np.float32: np.uint32, np.float64: np.uint64}


@dataclass(frozen=True, slots=True)
class NodeTable:
    """``leaves``: what each leaf says, numbers of the features' float type or integers;
    ``features`` and ``kinds`` as in ``TreeTables``."""

    tests: Tests
    leaves: Floats | Ints
    features: int
    kinds: int

    @classmethod
    def of(cls, tests: Tests, leaves: Floats | Ints) -> NodeTable:
        """Leaves, then branches."""
        features = int(tests.feature.max(initial=-1)) + 1
        greatest, least = bool((~tests.nan_first).any()), bool(tests.nan_first.any())
        return cls(tests, leaves, features, 1 * greatest + 2 * least or 1)

    def rows(self, real: _Real) -> npt.NDArray[Any]:
        """One row for each leaf, which leads to itself, and for each test."""
        tests, count, whole = self.tests, len(self.leaves), _WHOLE[real]
        table = np.zeros((count + len(tests.feature), FIELDS), whole)
        said = self.leaves
        table[:count, 1] = said.astype(real).view(whole) if said.dtype == np.float64 else said
        table[:count, 2] = table[:count, 3] = FIELDS * np.arange(count)
        behind = self.features if self.kinds == 3 else 0
        table[count:, 0] = tests.feature + behind * tests.nan_first
        table[count:, 1] = _keys(tests, _rounded_down(tests.limit, real), whole)
        table[count:, 2], table[count:, 3] = self.starts(tests.first), self.starts(tests.second)
        return table

    def starts(self, ways: Ints) -> Ints:
        """Where the rows of nodes begin in the table."""
        return FIELDS * np.where(ways < 0, ~ways, len(self.leaves) + ways)


def _keys(
    tests: Tests, limit: npt.NDArray[Any], whole: type[np.unsignedinteger[Any]]
) -> npt.NDArray[Any]:
    """The keys of limits: 0, below which no number's key lies, where nothing is at most a limit."""
    greatest = np.iinfo(whole).max
    keys = (limit + 0).view(whole) ^ np.where(limit < 0, greatest, greatest // 2 + 1).astype(whole)
    return np.where(np.isnan(limit), 0, keys + tests.nan_first.astype(whole))


def _rounded_down(limit: Floats, real: type[np.floating[Any]]) -> npt.NDArray[Any]:
    """The greatest number of a type that is at most ``limit``: what is at most the one is at most
    the other."""
    with np.errstate(over="ignore"):
        rounded = limit.astype(real)
    above = rounded > limit
    rounded[above] = np.nextafter(rounded[above], real(-np.inf))
    return rounded
