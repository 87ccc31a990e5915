"""The verifier finds every way in which a graph can be malformed, and names the node."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.verify import find_problems, verify

S0 = symbol("s0")
VECTOR = TensorType("f32", (S0,))


def good() -> Graph:
    """Two nodes on one symbolic vector."""
    builder = GraphBuilder([VECTOR])
    first = builder.add("abs", [0], source=(0,))
    return builder.finish(
        [builder.add("reduce", [first], {"axes": (0,), "function": "sum", "keepdims": False})]
    )


def with_node(index: int, **changes: object) -> Graph:
    """The good graph with one node changed."""
    graph = good()
    nodes = list(graph.nodes)
    nodes[index] = replace(nodes[index], **changes)  # type: ignore[arg-type]  # any field
    return replace(graph, nodes=tuple(nodes))


def read_dim(name: str) -> Graph:
    """A graph that reads the symbol ``name`` and makes a vector of that length."""
    nodes = (
        Node("read_dim", (1,), (), (("index", 0), ("symbol", name))),
        Node("iota", (), (2,), (("dtype", "f32"), ("length", symbol(name)))),
    )
    types = (VECTOR, TensorType("i64", (1,)), TensorType("f32", (symbol(name),)))
    return Graph((0, 1), nodes, (2,), types)


def test_good_graphs_pass() -> None:
    """What the builder makes is well formed; read_dim binds a symbol for later nodes."""
    verify(good())
    verify(read_dim("s1"))
    verify(Graph((), (), (), ()))


@pytest.mark.parametrize(
    ("graph", "where", "why"),
    [
        (with_node(0, op="nothing"), "node 0 (nothing)", "a core op"),
        (with_node(0, operands=(1,)), "node 0 (abs)", "defined before, got %1"),
        (with_node(0, operands=(2,)), "node 0 (abs)", "defined before, got %2"),
        (with_node(0, operands=(0, 0)), "node 0 (abs)", "expected 1 operands, got 2"),
        (with_node(0, results=(2,)), "the graph", "value %1 next (ids are dense), got %2"),
        (with_node(0, results=()), "the graph", "value %1 next"),
        (with_node(0, source=(2, 1)), "node 0 (abs)", "ascending source ordinals"),
        (with_node(0, source=(-1,)), "node 0 (abs)", "ascending source ordinals"),
        (
            with_node(1, attributes=good().nodes[1].attributes[::-1]),
            "node 1 (reduce)",
            "attributes sorted by name",
        ),
        (
            with_node(1, attributes=good().nodes[1].attributes[:2]),
            "node 1 (reduce)",
            "attributes {axes, function, keepdims}",
        ),
        (replace(good(), inputs=(1,)), "the graph", "value %0 next"),
        (replace(good(), outputs=(3,)), "the graph", "outputs that are defined, got %3"),
        (replace(good(), outputs=(-1,)), "the graph", "outputs that are defined"),
        (replace(good(), types=good().types[:2]), "the graph", "3 types, got 2"),
        (replace(good(), types=(*good().types, VECTOR)), "the graph", "3 types, got 4"),
        (
            replace(good(), types=(*good().types[:2], VECTOR)),
            "node 1 (reduce)",
            "expected results f32[], got f32[s0]",
        ),
        (
            Graph((0,), (), (), (TensorType("f32", (2 * S0,)),)),
            "the graph",
            "a symbol that an input or read_dim binds",
        ),
        (
            Graph((0,), (), (), (TensorType("f32", (symbol("inf"),)),)),
            "the graph",
            "identifiers of the text form",
        ),
        (read_dim("s0"), "node 0 (read_dim)", "a fresh symbol"),
        (read_dim("true"), "node 0 (read_dim)", "a fresh symbol"),
        (
            replace(read_dim("s1"), nodes=read_dim("s1").nodes[::-1]),
            "node 0 (iota)",
            "a symbol that an input or read_dim binds",
        ),
    ],
)
def test_malformed_graphs_are_refused(graph: Graph, where: str, why: str) -> None:
    """Every rule of a graph, broken once, gives an InternalError that names the node and what was
    expected."""
    with pytest.raises(InternalError) as caught:
        verify(graph)
    assert caught.value.where == where
    assert why in caught.value.why


def test_regions_are_checked_in_their_scope() -> None:
    """A region may read enclosing values, not those defined later; its types repeat the visible
    ones."""
    scalar = TensorType("bool", ())
    region = Graph((), (Node("neg", (1,), (2,)),), (2,), (scalar, VECTOR, VECTOR))

    def around(inner: Graph) -> Graph:
        return Graph(
            (0, 1),
            (Node(cast("OpName", "nothing"), (0,), (2,), (), (inner,)),),
            (2,),
            (scalar, VECTOR, VECTOR),
        )

    with pytest.raises(InternalError) as caught:
        verify(around(region))
    assert caught.value.where == "node 0 (nothing)"  # the only fault: no such op yet
    later = replace(region, nodes=(Node("neg", (2,), (2,)),))
    problems = _problems(around(later))
    assert "node 0.0.0 (neg): operands that are defined before" in problems
    strangers = replace(region, types=(scalar, scalar, VECTOR))
    assert "node 0.0 (graph): the types of the enclosing values first" in _problems(
        around(strangers)
    )


def _problems(graph: Graph) -> list[str]:
    return [
        f"{problem.where('node', 'graph')}: {problem.expected}" for problem in find_problems(graph)
    ]
