"""Tree ensembles of ai.onnx.ml as boosting and forests write them: models with inputs.

In: nothing. Out: ``TREES`` by name. Not done here: other ops (``algorithm_cases``,
``everyday_cases``, ``further_cases``), measuring (``bench_algorithms``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from tests.benchmarks.single_node import Array, Case, one, opened, random

_FEATURES = 20
_SAMPLES = 512  # of which each leaf of a tree has at least one


def _tree(numbers: np.random.Generator, samples: Array, leaves: int) -> list[tuple[Any, ...]]:
    """Nodes (feature, value, first, second): the leaf of most samples is divided where one of them
    lies, until there are enough. A leaf has feature -1 and a weight."""
    rows: list[tuple[Any, ...]] = [(-1, 0.0, 0, 0)]
    held = {0: np.arange(len(samples))}
    for _ in range(leaves - 1):
        place = max(held, key=lambda leaf: len(held[leaf]) * numbers.uniform(0.2, 1))
        own, feature = held.pop(place), int(numbers.integers(_FEATURES))
        value = samples[numbers.choice(own), feature]
        below = samples[own, feature] <= value
        rows[place] = (feature, float(value), len(rows), len(rows) + 1)
        for part in (own[below], own[~below]):
            held[len(rows)] = part
            rows.append((-1, 0.0, 0, 0))
    return [
        (-1, float(numbers.normal()), 0, 0) if feature < 0 else (feature, value, first, second)
        for feature, value, first, second in rows
    ]


def _trees(trees: int, leaves: int, rows: int, dtype: str, classes: int = 0) -> Callable[[], Case]:
    """A regressor, or a classifier whose trees each add to one class; NaN goes either way."""
    numbers = random()
    samples = numbers.standard_normal((_SAMPLES, _FEATURES)).astype(dtype)
    table = [
        (tree, node, *fields)
        for tree in range(trees)
        for node, fields in enumerate(_tree(numbers, samples, leaves))
    ]
    kind = "class" if classes else "target"
    tree_ids, node_ids, features, values, first, second = (
        list(field) for field in zip(*table, strict=True)
    )
    is_leaf = [feature < 0 for feature in features]
    added = [row for row, leaf in zip(table, is_leaf, strict=True) if leaf]

    def floats(name: str, items: list[float]) -> dict[str, Any]:
        if dtype == "f4":
            return {name: items}
        return {f"{name}_as_tensor": numpy_helper.from_array(np.array(items, dtype), name)}

    attributes: dict[str, Any] = {
        "nodes_treeids": tree_ids, "nodes_nodeids": node_ids,
        "nodes_featureids": [max(feature, 0) for feature in features],
        "nodes_modes": ["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        "nodes_truenodeids": first, "nodes_falsenodeids": second,
        "nodes_missing_value_tracks_true": numbers.integers(0, 2, len(table)).tolist(),
        f"{kind}_treeids": [row[0] for row in added], f"{kind}_nodeids": [row[1] for row in added],
        f"{kind}_ids": [row[0] % max(classes, 1) for row in added],
        **floats("nodes_values", values), **floats(f"{kind}_weights", [row[3] for row in added]),
        **({"classlabels_int64s": list(range(classes))} if classes else {"n_targets": 1}),
    }  # fmt: skip
    x = numbers.standard_normal((rows, _FEATURES)).astype(dtype)
    if classes:
        return one(
            "TreeEnsembleClassifier",
            {"x": x},
            result=TensorProto.INT64,
            domain="ai.onnx.ml",
            more=[TensorProto.FLOAT],
            **attributes,
        )
    return one("TreeEnsembleRegressor", {"x": x}, domain="ai.onnx.ml", **attributes)


def _case(*arguments: Any) -> Callable[[], Case]:
    """The trees are made when the case is: they take longer than other models. Rows are open."""

    def case() -> Case:
        return opened(_trees(*arguments))()

    return case


TREES: dict[str, Callable[[], Case]] = {
    **{
        f"{trees} trees of {leaves}, {rows} {dtype}": _case(trees, leaves, rows, dtype)
        for trees, leaves in ((100, 8), (100, 31), (500, 31), (100, 127))
        for rows in (1, 5, 16, 64)
        for dtype in ("f4", "f8")
    },
    "100 trees of 10 classes, 1 f4": _case(100, 31, 1, "f4", 10),
    "100 trees of 10 classes, 64 f4": _case(100, 31, 64, "f4", 10),
    "100 trees of 2 classes, 5 f8": _case(100, 31, 5, "f8", 2),
}
