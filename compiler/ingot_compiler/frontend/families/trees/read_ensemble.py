"""TreeEnsemble of ai.onnx.ml-5: branches and leaves in lists of their own.

In: a node's arrays. Out: ``Ensemble``. Not done here: the older ops (``read_classic``), ways that
never end (``depth``).
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.frontend.families.trees.ensemble import (
    Branches,
    Ensemble,
    Floats,
    Ints,
    Mode,
    TreeError,
    require,
)
from ingot_compiler.frontend.families.trees.node_arrays import NodeArrays


def read_ensemble(arrays: NodeArrays) -> Ensemble:
    """TreeError where an index leaves its list."""
    feature = arrays.ints("nodes_featureids")
    splits, modes = (arrays.tensor(name) for name in ("nodes_splits", "nodes_modes"))
    for name, values in (("nodes_splits", splits), ("nodes_modes", modes)):
        require(len(values) == len(feature), f"{len(feature)} entries of {name}", str(len(values)))
    unknown = modes[modes > Mode.MEMBER]
    require(not len(unknown), f"modes 0 to {int(Mode.MEMBER)}", str(unknown[:1]))
    target, weight = arrays.ints("leaf_targetids"), arrays.tensor("leaf_weights")
    count = len(target)
    require(len(weight) == count, f"{count} entries of leaf_weights", str(len(weight)))
    first, second = (_ways(arrays, name, feature, count) for name in ("true", "false"))
    tracks = arrays.ints_like("nodes_missing_value_tracks_true", feature, 0)
    # NaN is unequal to everything, in every implementation of this op.
    nan_first = (tracks != 0) | (modes == Mode.NEQ)
    branches = Branches(
        feature, splits.astype(np.float64), modes.astype(np.uint8), first, second, nan_first
    )
    return Ensemble(
        branches, _roots(arrays, branches), count, _sets(arrays, modes == Mode.MEMBER),
        np.arange(count), target, weight.astype(np.float64), arrays.integer("n_targets", 1),
        splits.dtype == np.float64, weight.dtype == np.float64,
    )  # fmt: skip


def _ways(arrays: NodeArrays, name: str, like: Ints, leaf_count: int) -> Ints:
    ids = arrays.ints_like(f"nodes_{name}nodeids", like)
    is_leaf = arrays.ints_like(f"nodes_{name}leafs", like) != 0
    limit = np.where(is_leaf, leaf_count, len(like))
    _require_inside(f"nodes_{name}nodeids", ids, limit)
    return np.where(is_leaf, ~ids, ids)


def _require_inside(name: str, ids: Ints, limit: Ints) -> None:
    outside = np.flatnonzero((ids < 0) | (ids >= limit))
    if len(outside):
        at = outside[0]
        raise TreeError(f"{name} in [0, {limit[at]})", str(ids[at]))


def _roots(arrays: NodeArrays, branches: Branches) -> Ints:
    """A tree that is one leaf has a branch whose ways both lead there."""
    roots = arrays.ints("tree_roots")
    require(len(roots) > 0, "at least one tree", "none")
    _require_inside("tree_roots", roots, np.full(len(roots), len(branches)))
    first = branches.first[roots]
    return np.where((first < 0) & (first == branches.second[roots]), first, roots)


def _sets(
    arrays: NodeArrays, is_member: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[Floats]:
    """The values of each MEMBER branch: NaN ends the list of one."""
    values = arrays.tensor("membership_values").astype(np.float64)
    ends = np.flatnonzero(np.isnan(values))
    count = int(is_member.sum())
    require(len(ends) == count, f"{count} lists in membership_values", str(len(ends)))
    starts = [0, *(ends + 1)]
    return [values[start:end] for start, end in zip(starts, ends, strict=False)]
