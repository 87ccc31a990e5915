"""Tree ensembles as tables: what core ``walk_trees`` reads, and what leaves add.

In: a node of the file. Out: ``TreeTables``; ``TreeError`` for what is no tree. Not done here:
storing tables, what is computed from the leaves (``ops/ml``).

Leaves are the first nodes: a row has ended where its place is below those of branches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from ingot_compiler.frontend.families.trees.comparisons import Tests, tests_of
from ingot_compiler.frontend.families.trees.ensemble import (
    Branches,
    Ensemble,
    Floats,
    Ints,
    require,
)
from ingot_compiler.frontend.families.trees.levels import levels
from ingot_compiler.frontend.families.trees.node_arrays import NodeArrays
from ingot_compiler.frontend.families.trees.node_table import NodeTable
from ingot_compiler.frontend.families.trees.read_classic import read_classic
from ingot_compiler.frontend.families.trees.read_ensemble import read_ensemble
from ingot_runtime.lazy_dataclass import dataclass

_FEATURES_MAX = _TARGETS_MAX = 1 << 24
_DENSE_MAX_BYTES = 1 << 31

_READERS: dict[str, Callable[[NodeArrays], Ensemble]] = {
    "TreeEnsemble": read_ensemble,
    "TreeEnsembleClassifier": lambda arrays: read_classic(arrays, "class"),
    "TreeEnsembleRegressor": lambda arrays: read_classic(arrays, "target"),
}
TREE_OPS = frozenset(_READERS)


@dataclass(frozen=True, slots=True)
class TreeTables:
    """``nodes``: u32[m, 4] for f32 features, ``wide_nodes``: u64[m, 4] for f64 features, each where
    the model may need it: as core ``walk_trees`` reads them, limits as keys. ``roots``: u32[trees].

    Where every tree adds to one target, leaves have the bits of what they add, in the float type of
    the features, and ``weights`` is None: of the trees then, an equal number is for each target, in
    their order. Otherwise leaves have their numbers, and ``weights`` is [leaves, targets], or
    [leaves]. ``has_wide_weights``: weights are f64 in the file.

    ``features``: how many columns are asked for; ``kinds``: 1 where NaN is the greatest number of
    columns, 2 where it is the least one, 3 where both are asked for, the latter behind ``features``
    others. ``trees``: how many the file has. ``added``: the targets that leaves add to.
    """

    nodes: npt.NDArray[np.uint32] | None
    wide_nodes: npt.NDArray[np.uint64] | None
    roots: npt.NDArray[np.uint32]
    weights: npt.NDArray[Any] | None
    has_wide_weights: bool
    depth: int
    features: int
    kinds: int
    leaves: int
    trees: int
    targets: int
    added: Ints
    all_positive: bool


def tree_tables(node: NodeProto, empty: float, *, has_wide: bool) -> TreeTables:
    """The tables of a node. ``empty``: what a target has to which no leaf of a tree adds;
    ``has_wide``: the model has f64 values."""
    ensemble = _READERS[node.op_type](NodeArrays.of(node))
    _check_numbers(ensemble)
    found = levels(ensemble)
    tests = tests_of(ensemble)
    if len(tests.feature) > len(ensemble.branches):
        depth = levels(replace(ensemble, branches=_as_branches(tests))).depth
    else:
        depth = found.depth
    weights, roots = _weights(ensemble, found.tree, empty)
    leaves, wide_weights = len(weights), ensemble.is_wide_weight
    wide = ensemble.is_wide or has_wide
    # The leaves of f32 tables have no place for f64.
    in_leaves = weights.ndim == 1 and (ensemble.is_wide or not wide_weights)
    nodes = NodeTable.of(tests, weights if in_leaves else np.arange(leaves))
    return TreeTables(
        None if ensemble.is_wide else nodes.rows(np.float32),
        nodes.rows(np.float64) if wide else None,
        nodes.starts(roots).astype(np.uint32),
        None if in_leaves else weights.astype(np.float64 if wide_weights else np.float32),
        wide_weights, depth, nodes.features, nodes.kinds, leaves, len(ensemble.roots),
        ensemble.target_count, np.flatnonzero(np.bincount(ensemble.target)),
        bool((ensemble.weight >= 0).all()),
    )  # fmt: skip


def _check_numbers(ensemble: Ensemble) -> None:
    feature, target = ensemble.branches.feature, ensemble.target
    wrong = feature[(feature < 0) | (feature >= _FEATURES_MAX)]
    require(not len(wrong), f"features in [0, {_FEATURES_MAX})", str(wrong[:1]))
    limit = ensemble.target_count
    require(0 < limit <= _TARGETS_MAX, f"1 to {_TARGETS_MAX} targets or class labels", str(limit))
    wrong = target[(target < 0) | (target >= limit)]
    require(not len(wrong), f"targets in [0, {limit})", str(wrong[:1]))


def _as_branches(tests: Tests) -> Branches:
    modes, nans = np.zeros(len(tests.feature), np.uint8), np.zeros(len(tests.feature), np.bool_)
    return Branches(tests.feature, tests.limit, modes, tests.first, tests.second, nans)


def _weights(ensemble: Ensemble, tree: Ints, empty: float) -> tuple[Floats, Ints]:
    """What leaves add, and the roots in the order of the targets."""
    count, target_count = len(ensemble.roots), ensemble.target_count
    own = tree[ensemble.leaf]
    targets = _one_target(own, ensemble.target, count)
    if targets is not None:
        each = np.bincount(targets, minlength=target_count)
        most = int(each.max())
        if target_count == 1 or most * target_count <= 2 * count:
            return _by_target(ensemble, targets, most, empty)
    size_bytes = ensemble.leaf_count * target_count * 8
    expected = f"at most {_DENSE_MAX_BYTES} bytes for {target_count} targets of each leaf"
    require(size_bytes <= _DENSE_MAX_BYTES, expected, str(size_bytes))
    weights = _filled((ensemble.leaf_count, target_count), empty, ensemble, ensemble.target)
    return weights, ensemble.roots


def _one_target(own: Ints, target: Ints, count: int) -> Ints | None:
    """The target of each tree, 0 where it has none; None where one has several."""
    if (own < 0).any():
        own, target = own[own != -1], target[own != -1]
        if (own < 0).any():
            return None if (target != target[:1]).any() else np.full(count, target[0])
    found = np.zeros(count, np.int64)
    found[own] = target
    return found if (found[own] == target).all() else None


def _by_target(ensemble: Ensemble, targets: Ints, most: int, empty: float) -> tuple[Floats, Ints]:
    """One number for each leaf; a leaf more is the tree that makes up for those that a target
    lacks."""
    order = np.argsort(targets, kind="stable")
    each = np.bincount(targets, minlength=ensemble.target_count)
    starts = np.repeat(np.arange(ensemble.target_count) * most, each)
    inside = np.arange(len(order)) - np.repeat(np.cumsum(each) - each, each)
    roots = np.full(ensemble.target_count * most, ~ensemble.leaf_count, np.int64)
    roots[starts + inside] = ensemble.roots[order]
    weights = _filled((ensemble.leaf_count + 1,), empty, ensemble, None)
    return weights, roots


def _filled(
    shape: tuple[int, ...], empty: float, ensemble: Ensemble, target: Ints | None
) -> Floats:
    """The sum of what is said of each entry, ``empty`` where nothing is."""
    total, said = np.zeros(shape), np.zeros(shape, np.bool_)
    at = ensemble.leaf if target is None else (ensemble.leaf, target)
    np.add.at(total, at, ensemble.weight)
    said[at] = True
    total[~said] = empty
    return total
