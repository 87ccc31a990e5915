"""TreeEnsembleClassifier and TreeEnsembleRegressor: every node by the numbers of its tree and of
itself.

In: a node's arrays. Out: ``Ensemble``. Not done here: ``TreeEnsemble`` (``read_ensemble``), ways
that never end (``depth``).
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.frontend.families.trees.ensemble import (
    Bools,
    Branches,
    Ensemble,
    Ints,
    Mode,
    TreeError,
    require,
)
from ingot_compiler.frontend.families.trees.node_arrays import NodeArrays
from ingot_runtime.lazy_dataclass import dataclass

_LEAF = 255
_KEYS_MAX = 1 << 62
_MODES = {b"LEAF": _LEAF, **{f"BRANCH_{mode.name}".encode(): int(mode) for mode in Mode}}


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The pairs (tree, node) of all nodes, sorted, as one number each: ``least`` of both ids stand
    for 0, and a tree has ``width`` numbers."""

    least: tuple[int, int]
    width: int
    keys: Ints
    order: Ints

    @classmethod
    def of(cls, trees: Ints, nodes: Ints) -> _Numbers:
        """TreeError for a node that is there twice, and for ids that lie too far apart."""
        least = int(trees.min()), int(nodes.min())
        width, height = int(nodes.max()) - least[1] + 1, int(trees.max()) - least[0] + 1
        require(width * height < _KEYS_MAX, "ids of nodes and trees near each other", "others")
        keys = (trees - least[0]) * width + (nodes - least[1])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            at = order[twice[0]]
            raise TreeError("every node once", f"node {nodes[at]} of tree {trees[at]} twice")
        return cls(least, width, keys, order)

    def find(self, trees: Ints, nodes: Ints, what: str) -> Ints:
        """The places of nodes in the list; TreeError where one is not there."""
        tree, node = trees - self.least[0], nodes - self.least[1]
        inside = (node >= 0) & (node < self.width) & (tree >= 0) & (tree <= self.keys[-1])
        keys = np.where(inside, tree, 0) * self.width + np.where(inside, node, 0)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_there = inside & (self.keys[at] == keys)
        if not is_there.all():
            first = int(np.argmin(is_there))
            raise TreeError(f"{what} to be a node of its tree", f"{nodes[first]} of {trees[first]}")
        return self.order[at]


def read_classic(arrays: NodeArrays, kind: str) -> Ensemble:
    """``kind``: "class" or "target", which begins the names of what leaves add."""
    trees = arrays.ints("nodes_treeids")
    require(len(trees) > 0, "at least one node", "none")
    nodes = arrays.ints_like("nodes_nodeids", trees)
    numbers = _Numbers.of(trees, nodes)
    modes = _modes(arrays, len(trees))
    is_leaf = modes == _LEAF
    place = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    branches, is_wide = _branches(arrays, numbers, (trees, modes, place))
    leaf, target, weight, is_wide_weight = _leaf_entries(arrays, kind, numbers, place)
    _, roots = np.unique(trees, return_index=True)
    return Ensemble(
        branches, place[roots], int(is_leaf.sum()), (), leaf, target, weight,
        _target_count(arrays, kind), is_wide, is_wide_weight,
    )  # fmt: skip


def _modes(arrays: NodeArrays, count: int) -> Ints:
    texts = arrays.texts("nodes_modes")
    require(len(texts) == count, f"{count} entries of nodes_modes", str(len(texts)))
    codes = np.full(count, -1, np.int64)
    for text, code in _MODES.items():
        if code != Mode.MEMBER:
            codes[texts == text] = code
    if (codes < 0).any():
        unknown = bytes(texts[int(np.argmin(codes))]).decode("utf-8", "replace")
        expected = ", ".join(text.decode() for text, code in _MODES.items() if code != Mode.MEMBER)
        raise TreeError(f"modes among {expected}", repr(unknown))
    return codes


def _branches(
    arrays: NodeArrays, numbers: _Numbers, nodes: tuple[Ints, Ints, Ints]
) -> tuple[Branches, bool]:
    trees, modes, place = nodes
    is_branch: Bools = modes != _LEAF
    feature = arrays.ints_like("nodes_featureids", trees)
    values, is_wide = arrays.floats("nodes_values", len(trees))
    tracks = arrays.ints_like("nodes_missing_value_tracks_true", trees, 0)
    ways: list[Ints] = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        targets = arrays.ints_like(name, trees)[is_branch]
        ways.append(place[numbers.find(trees[is_branch], targets, f"{name}")])
    own = modes[is_branch].astype(np.uint8)
    nan_first = tracks[is_branch] != 0
    branches = Branches(feature[is_branch], values[is_branch], own, ways[0], ways[1], nan_first)
    return branches, is_wide


def _leaf_entries(
    arrays: NodeArrays, kind: str, numbers: _Numbers, place: Ints
) -> tuple[Ints, Ints, np.ndarray[tuple[int], np.dtype[np.float64]], bool]:
    """What leaves add; what the file says of branches, which no row ends in, is left out."""
    trees = arrays.ints(f"{kind}_treeids")
    nodes, targets = (arrays.ints_like(f"{kind}_{name}", trees) for name in ("nodeids", "ids"))
    weights, is_wide = arrays.floats(f"{kind}_weights", len(trees))
    if not len(trees):
        return trees, trees, weights, is_wide
    at = place[numbers.find(trees, nodes, f"{kind}_nodeids")]
    is_leaf = at < 0
    return ~at[is_leaf], targets[is_leaf], weights[is_leaf], is_wide


def _target_count(arrays: NodeArrays, kind: str) -> int:
    if kind == "target":
        return arrays.integer("n_targets", 1)
    labels = arrays.attributes.get("classlabels_strings")
    return max(len(arrays.ints("classlabels_int64s")), len(labels.strings) if labels else 0)
