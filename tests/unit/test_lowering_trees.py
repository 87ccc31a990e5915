"""``walk_trees``: compiled code goes the way that the interpreter goes, at every level of this
machine."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.codegen_harness import RUNNABLE, Array
from tests.unit.lowering_harness import Builder, check_graph

from ingot_compiler.ir.types import DType, TensorType

FLOAT = {"f32": (np.float32, np.int32), "f64": (np.float64, np.int64)}


def forest(dtype: DType, trees: int, depth: int, features: int) -> tuple[Array, Array, int]:
    """Random trees in which some ways end early: nodes, roots, the number of leaves."""
    rng = np.random.default_rng(trees * 31 + depth)
    real, whole = FLOAT[dtype]
    branches: list[tuple[int, float, int, int]] = []
    leaves, used = trees << depth, 0

    def grow(left: int) -> int:
        nonlocal used
        if left == 0 or (left < depth and rng.random() < 0.2):
            used += 1
            return used - 1
        place = len(branches)
        branches.append((0, 0.0, 0, 0))
        children = (grow(left - 1), grow(left - 1))
        threshold = float(
            rng.choice([rng.normal(), np.inf, -np.inf, 0.0], p=[0.9, 0.04, 0.03, 0.03])
        )
        branches[place] = (int(rng.integers(features)), threshold, *children)
        return leaves + place

    roots = np.array([grow(depth) for _ in range(trees)], np.int32)
    nodes = np.zeros((leaves + len(branches), 4), whole)
    nodes[:leaves, 2:] = np.arange(leaves)[:, None]
    for place, (feature, threshold, first, second) in enumerate(branches, leaves):
        bits = np.array(threshold, real).view(whole)
        nodes[place] = (feature, bits, first, second)
    return nodes, roots, leaves


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("rows", "trees", "depth"),
    [(1, 1, 0), (1, 37, 6), (3, 16, 1), (64, 3, 5), (150, 33, 7), (0, 5, 2)],
)
def test_walk_trees(dtype: DType, rows: int, trees: int, depth: int) -> None:
    """Rows and trees that fill no group are walked too; NaN goes the second way."""
    nodes, roots, leaves = forest(dtype, trees, depth, 5)
    x = np.random.default_rng(1).normal(size=(rows, 6)).astype(FLOAT[dtype][0])
    x[::7, 2], x[1::9, 3], x[2::9, 4] = np.nan, np.inf, -0.0
    builder = Builder([TensorType(dtype, (rows, 6))])
    tables = builder.constant(nodes), builder.constant(roots)
    found = builder.op("walk_trees", 0, *tables, depth=depth, features=5, leaves=leaves)
    check_graph(builder, [found], [x], 0, RUNNABLE)
