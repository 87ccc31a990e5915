"""``walk_trees``: compiled code goes the way that the interpreter goes, at every level of this
machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import Builder, check_graph, compile_graph

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.targets.target import parse_target

KEYS: dict[DType, np.dtype[np.unsignedinteger[Any]]] = {
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
}


def forest(dtype: DType, trees: int, depth: int, features: int) -> tuple[Array, Array, int]:
    """Random trees in which some ways end early: nodes, roots, the number of leaves."""
    rng = np.random.default_rng(trees * 31 + depth)
    greatest = np.iinfo(KEYS[dtype]).max
    branches: list[tuple[int, int, int, int]] = []
    leaves, used = trees << depth, 0

    def grow(left: int) -> int:
        nonlocal used
        if left == 0 or (left < depth and rng.random() < 0.2):
            used += 1
            return used - 1
        place = len(branches)
        branches.append((0, 0, 0, 0))
        children = (grow(left - 1), grow(left - 1))
        number = int(rng.integers(greatest, dtype=np.uint64))
        limit = (number, 0, greatest)[rng.choice(3, p=[0.9, 0.05, 0.05])]
        branches[place] = (int(rng.integers(features)), limit, *children)
        return leaves + place

    roots = np.array([4 * grow(depth) for _ in range(trees)], np.uint32)
    nodes = np.zeros((leaves + len(branches), 4), KEYS[dtype])
    nodes[:leaves, 1] = rng.integers(greatest, size=leaves, dtype=np.uint64)
    nodes[:leaves, 2:] = 4 * np.arange(leaves)[:, None]
    for place, (feature, limit, first, second) in enumerate(branches, leaves):
        nodes[place] = (feature, limit, 4 * first, 4 * second)
    return nodes, roots, leaves


@pytest.mark.sweep(18)
@pytest.mark.parametrize("dtype", ["u32", "u64"])
@pytest.mark.parametrize(
    ("rows", "trees", "depth"),
    [(1, 1, 0), (1, 37, 6), (3, 16, 1), (64, 3, 5), (150, 33, 7), (0, 5, 2)],
)
def test_walk_trees(dtype: DType, rows: int, trees: int, depth: int) -> None:
    """Rows and trees that fill no group are walked too; the whole range of numbers is compared."""
    nodes, roots, leaves = forest(dtype, trees, depth, 5)
    greatest = np.iinfo(KEYS[dtype]).max
    rng = np.random.default_rng(1)
    x = rng.integers(greatest, size=(rows, 6), dtype=np.uint64).astype(KEYS[dtype])
    x[::7, 2], x[1::9, 3] = greatest, 0
    builder = Builder([TensorType(dtype, (rows, 6))])
    tables = builder.constant(nodes), builder.constant(roots)
    found = builder.op("walk_trees", 0, *tables, depth=depth, features=5, leaves=leaves)
    check_graph(builder, [found], [x], 0, RUNNABLE)


def test_nodes_beside_others() -> None:
    """The numbers of a node may lie apart from those of the next one."""
    nodes, roots, leaves = forest("u32", 9, 3, 5)
    wide = np.concatenate([nodes, np.full((len(nodes), 2), 7, np.uint32)], axis=1)
    builder = Builder([TensorType("u32", (11, 5)), TensorType("u32", wide.shape)])
    own = builder.op("slice", 1, starts=(0, 0), sizes=nodes.shape, steps=(1, 1))
    numbers = {"depth": 3, "features": 5, "leaves": leaves}
    found = builder.op("walk_trees", 0, own, builder.constant(roots), **numbers)
    x = np.random.default_rng(2).integers(1 << 32, size=(11, 5), dtype=np.uint32)
    check_graph(builder, [found], [x, wide], 0, RUNNABLE)


@pytest.mark.parametrize(("dtype", "move"), [("u32", "cmoval"), ("u64", "cmovaq")])
def test_steps_neither_jump_nor_wait_with_a_load(dtype: DType, move: str) -> None:
    """A step ends with one conditional move between the two next nodes, on x86-64."""
    nodes, roots, leaves = forest(dtype, 8, 3, 5)
    builder = Builder([TensorType(dtype, (1, 5))])
    tables = builder.constant(nodes), builder.constant(roots)
    found = builder.op("walk_trees", 0, *tables, depth=3, features=5, leaves=leaves)
    target = parse_target("x86-64-v3")
    (program,) = compile_graph(builder.finish([found]), target).programs
    text = assembly_text(llvm_text(kernel_module(program, target)), target)
    assert text.count(move) == 2 * 3 * 8  # rows in a tree, and trees of a row
    assert "\tset" not in text
