"""What a file has and no output follows from is left out, and told of where Ingot could not have
run it."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, run_model, translate

X = np.array([[-1.0, 2.0]], np.float32)


def ignored(made: ModelProto) -> tuple[str, ...]:
    """What is told; the model computes relu."""
    assert run_model(made, [X], [np.maximum(X, 0)]).kind == "agrees"
    return translate(made, MemoryStore())[1].ignored


def test_dead_nodes() -> None:
    """Unknown ops, contradictions, and what follows from these; a sound one is not told of."""
    nodes = [
        node("NoSuchOp", "x", "a", name="unknown"), node("Relu", "a", "b", name="behind"),
        node("Cast", "x", "c", name="cast", to=TensorProto.FLOAT8E4M3FN),
        node("Gemm", "x", "d", name="wrong"), node("Abs", "x", "e", name="sound"),
        node("Relu", "x", "y"),
    ]  # fmt: skip
    nodes.append(helper.make_node("Foo", ["x"], ["f"], "foreign", domain="my.domain"))
    made = make_model(nodes, [tensor("x", ["n", 2])], [tensor("y", ["n", 2])])
    told = [f"node {name}: no node reads its results" for name in (
        "'unknown' (NoSuchOp)", "'wrong' (Gemm)", "'foreign' (Foo)",
    )]  # fmt: skip
    assert list(ignored(made)) == told


def test_dead_nodes_of_a_branch() -> None:
    """They are left out as well."""
    inner = [node("NoSuchOp", "x", "a", name="unknown"), node("Relu", "x", "b")]
    body = helper.make_graph(inner, "then", [], [tensor("b", ["n", 2])])
    other = helper.make_graph([node("Relu", "x", "o")], "else", [], [tensor("o", ["n", 2])])
    made = make_model(
        [node("ReduceMax", "x", "m", keepdims=0), node("Less", "m zero", "c"),
         node("If", "c", "y", then_branch=body, else_branch=other)],
        [tensor("x", ["n", 2])], [tensor("y", ["n", 2])], {"zero": np.array(0, np.float32)},
    )  # fmt: skip
    assert ignored(made) == ("node 'unknown' (NoSuchOp): no node reads its results",)


def test_unused_inputs() -> None:
    """An input of a type that Ingot has stays, one of another type is not asked for."""
    inputs = [tensor("s", [2], TensorProto.STRING), tensor("x", ["n", 2]), tensor("u", [3])]
    made = make_model([node("Relu", "x", "y")], inputs, [tensor("y", ["n", 2])])
    graph, names = translate(made, MemoryStore())
    assert names.inputs == ("x", "u")
    assert len(graph.inputs) == 2
    assert names.ignored == ("input 's': nobody reads it",)
