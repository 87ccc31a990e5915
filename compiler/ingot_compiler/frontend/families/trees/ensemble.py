"""What a tree ensemble says, as arrays: one form for all versions of the op.

In: nothing. Out: ``Ensemble``, ``Mode``, ``TreeError``. Not done here: reading one
(``read_ensemble``, ``read_classic``), tables (``tables``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ingot_runtime.lazy_dataclass import dataclass

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Mode(IntEnum):
    """How a branch compares a feature with its value: ONNX TreeEnsemble-5, ``nodes_modes``."""

    LEQ = 0
    LT = 1
    GTE = 2
    GT = 3
    EQ = 4
    NEQ = 5
    MEMBER = 6


class TreeError(Exception):
    """Attributes that are no trees: expected, got."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")


def require(condition: bool, expected: str, got: str) -> None:  # the condition
    """TreeError unless ``condition`` holds."""
    if not condition:
        raise TreeError(expected, got)


@dataclass(frozen=True, slots=True)
class Branches:
    """One entry for each branch. ``first`` is where a row goes whose feature compares true,
    ``second`` where others go: a branch, or a leaf as ``~leaf``; ``nan_first``: where NaN goes."""

    feature: Ints
    value: Floats
    mode: npt.NDArray[np.uint8]
    first: Ints
    second: Ints
    nan_first: Bools

    def __len__(self) -> int:
        return len(self.feature)


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Trees, and what their leaves add to targets.

    ``roots``: as ``Branches.first``, one for each tree; ``sets``: the values of each MEMBER branch,
    in the order of these; ``leaf``, ``target``, ``weight``: one entry for each number that a leaf
    adds. ``is_wide``: the values of branches are f64 in the file; ``is_wide_weight``: weights.
    """

    branches: Branches
    roots: Ints
    leaf_count: int
    sets: Sequence[Floats]
    leaf: Ints
    target: Ints
    weight: Floats
    target_count: int
    is_wide: bool
    is_wide_weight: bool
