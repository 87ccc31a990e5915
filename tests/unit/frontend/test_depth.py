"""Long chains: of elementwise ops, of ops on shapes, of sums of sizes. No stage calls itself once
for each of their ops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, no_external
from tests.stage_checks import check_imported

import ingot
import ingot_runtime
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.verify import verify
from ingot_compiler.oracles.interpret import interpret

COUNT = 2 * sys.getrecursionlimit()
K = {"k0": np.array([3, 2]), "k1": np.array([2, 5]), "k2": np.array([1, 4])}


def ops_on_shapes(count: int, ops: tuple[str, ...]) -> list[NodeProto]:
    """t0 goes through ``count`` ops."""
    return [
        node(ops[number % len(ops)], f"t{number} k{number % 3}", f"t{number + 1}")
        for number in range(count)
    ]


def elementwise(count: int) -> ModelProto:
    """A chain on floats."""
    nodes = [node(("Neg", "Abs", "Relu")[it % 3], f"t{it}", f"t{it + 1}") for it in range(count)]
    return make_model(nodes, [tensor("t0", ["n", 2])], [tensor(f"t{count}", None)])


def shapes(count: int) -> ModelProto:
    """A chain on a shape that is known as expressions for a while."""
    nodes = [node("Shape", "x", "t0"), *ops_on_shapes(count, ("Max", "Add", "Min", "Div"))]
    nodes.append(node("ConstantOfShape", f"t{count}", "y"))
    return make_model(nodes, [tensor("x", ["n", "m"])], [tensor("y", None)], K)


def read_shapes(count: int) -> ModelProto:
    """A chain on a shape that data decides."""
    nodes = [*ops_on_shapes(count, ("Max", "Add", "Min", "Div"))]
    nodes.append(node("ConstantOfShape", f"t{count}", "y"))
    given = [tensor("t0", [2], TensorProto.INT64)]
    return make_model(nodes, given, [tensor("y", None)], K)


def sums(count: int) -> ModelProto:
    """A chain of concatenations: each size is the sum of the one before and another."""
    nodes = [node("Concat", f"t{it} t0", f"t{it + 1}", axis=0) for it in range(count)]
    return make_model(nodes, [tensor("t0", ["n", 2])], [tensor(f"t{count}", None)])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("make", [elementwise, shapes, read_shapes, sums])
def test_stages_of_a_long_chain(make: Callable[[int], ModelProto]) -> None:
    """Import, types, texts, verifier and interpreter; twice as long as Python's stack is deep."""
    model, store = make(COUNT), MemoryStore()
    imported, _ = import_model(model.SerializeToString(), no_external, store.write, [], [])
    check_imported(imported)
    graph = infer_types(imported, store.read).graph
    verify(graph)
    assert parse_graph(print_graph(graph)) == graph
    given = [
        np.ones([2] * graph.types[value].rank, np.int64 if graph.types[value].dtype == "i64" else np.float32)
        for value in graph.inputs
    ]  # fmt: skip
    (result,) = interpret(graph, given, store.read)
    assert result.ndim == 2


@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    "make", [shapes, read_shapes, pytest.param(elementwise, marks=pytest.mark.slow)]
)
def test_a_bundle_of_a_long_chain(tmp_path: Path, make: Callable[[int], ModelProto]) -> None:
    """All later stages; the bundle runs."""
    ingot.compile(make(COUNT // 2), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    (spec,) = session.inputs
    given = np.ones((2,) * len(spec.shape), spec.dtype)
    (result,) = session.run({spec.name: given}).values()
    assert result.ndim == 2


def test_numbers_that_wrap() -> None:
    """A known product that 64 bits do not hold is left to the kernels."""
    nodes = [node("Shape", "x", "t0")]
    nodes += [node("Mul", f"t{it} k", f"t{it + 1}") for it in range(5)]
    model = make_model(
        nodes, [tensor("x", [3])], [tensor("t5", [1], TensorProto.INT64)],
        {"k": np.array([1 << 20])},
    )  # fmt: skip
    store = MemoryStore()
    imported, _ = import_model(model.SerializeToString(), no_external, store.write, [], [])
    graph = infer_types(imported, store.read).graph
    (result,) = interpret(graph, [np.ones(3, np.float32)], store.read)
    assert result.tolist() == [0]


@pytest.mark.broad
def test_paths_through_diamonds_are_not_counted(tmp_path: Path) -> None:
    """Behind a convolution, each of 60 ops reads its operand twice: 2^60 paths lead to the output,
    which decide the layout of its result."""
    steps = [(f"t{it}", f"t{it + 1}") for it in range(60)]
    nodes = [node("Conv", "x w", "t0")]
    for value, result in steps:
        nodes += [
            node("Sin", value, f"gate_{result}"),
            node("Mul", f"{value} gate_{result}", result),
        ]
    weights = {"w": np.full((4, 3, 1, 1), 0.5, np.float32)}
    model = make_model(nodes, [tensor("x", [1, 3, 4, 4])], [tensor("t60", None)], weights)
    path = tmp_path / "diamonds.ingot"
    ingot.compile(model).save(path)
    found = ingot_runtime.load(path).run({"x": np.ones((1, 3, 4, 4), np.float32)})
    assert np.isfinite(found["t60"]).all()
