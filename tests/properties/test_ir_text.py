"""Properties of the text form on random graphs: read back equal, verified, stable digests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.digest import graph_digest
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.verify import verify
from ingot_compiler.oracles.interpret import interpret

UNARY: tuple[OpName, ...] = ("abs", "neg", "relu", "exp", "tanh", "sigmoid", "floor")
BINARY: tuple[OpName, ...] = ("add", "sub", "mul", "max", "min")
DIMS: st.SearchStrategy[Dim] = st.integers(1, 4) | st.sampled_from((symbol("s0"), symbol("s1")))
SHAPES = st.lists(DIMS, max_size=3).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A random well-formed graph of float32 tensors with symbolic sizes, ordinals and marks."""
    shape = draw(SHAPES)
    inputs = [TensorType("f32", shape), TensorType("f32", (symbol("s0"), symbol("s1")))]
    builder = GraphBuilder(inputs)
    values = [0]
    for _ in range(draw(st.integers(0, 6))):
        source = tuple(sorted(draw(st.sets(st.integers(0, 99), max_size=2))))
        mark = draw(st.sampled_from(("", "acc", 'quote"\\\n')))
        values.append(_add_node(draw, builder, values, source, mark))
    return builder.finish(draw(st.lists(st.sampled_from(values), max_size=3)))


def _add_node(
    draw: st.DrawFn, builder: GraphBuilder, values: list[int], source: tuple[int, ...], mark: str
) -> int:
    value = draw(st.sampled_from(values))
    shape = builder.types[value].shape
    kind = draw(
        st.sampled_from(
            ("unary", "binary", "literal", "transpose", "reduce", "concat", "broadcast_to")
        )
    )
    if kind == "unary":
        return builder.add(draw(st.sampled_from(UNARY)), [value], {}, source, mark)
    if kind == "binary":
        same = [other for other in values if builder.types[other].shape == shape]
        return builder.add(
            draw(st.sampled_from(BINARY)), [value, draw(st.sampled_from(same))], {}, source, mark
        )
    if kind == "literal":
        number = draw(st.floats(allow_nan=False, width=32))
        return builder.add(
            "literal", [], {"dtype": "f32", "shape": (), "value": (number,)}, source, mark
        )
    if kind == "transpose":
        return builder.add(
            "transpose",
            [value],
            {"permutation": tuple(draw(st.permutations(range(len(shape)))))},
            source,
            mark,
        )
    if kind == "reduce":
        axes = tuple(sorted(draw(st.sets(st.sampled_from(range(len(shape))))))) if shape else ()
        attributes: dict[str, Attribute] = {
            "axes": axes,
            "function": draw(st.sampled_from(("sum", "max"))),
            "keepdims": draw(st.booleans()),
        }
        return builder.add("reduce", [value], attributes, source, mark)
    if kind == "concat" and shape:
        return builder.add(
            "concat", [value, value], {"axis": draw(st.integers(0, len(shape) - 1))}, source, mark
        )
    return builder.add(
        "broadcast_to", [value], {"shape": (symbol("s1") * 2 + 1, *shape)}, source, mark
    )


@given(graphs())
@settings(max_examples=60)
def test_parsing_undoes_printing(graph: Graph) -> None:
    """parse(print(g)) == g, and printing that gives the same text."""
    verify(graph)
    text = print_graph(graph)
    assert parse_graph(text) == graph
    assert print_graph(parse_graph(text)) == text


@given(graphs())
@settings(max_examples=40)
def test_digests_ignore_ordinals(graph: Graph) -> None:
    """Dropping every ordinal keeps the digest; dropping the outputs changes it."""
    bare = replace(graph, nodes=tuple(replace(node, source=()) for node in graph.nodes))
    assert graph_digest(bare) == graph_digest(graph)
    if graph.outputs:
        assert graph_digest(replace(graph, outputs=())) != graph_digest(graph)


@given(graphs(), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=60)
def test_type_rules_predict_what_references_give(graph: Graph, s0: int, s1: int) -> None:
    """The interpreter checks every result against its evaluated type; random graphs run at random
    sizes."""
    sizes = {symbol("s0"): s0, symbol("s1"): s1}
    shapes = [
        [dim if isinstance(dim, int) else sizes[dim] for dim in graph.types[value].shape]
        for value in graph.inputs
    ]
    inputs = [np.ones(shape, np.float32) for shape in shapes]
    results = interpret(graph, inputs, lambda _digest: memoryview(b""))
    assert [result.ndim for result in results] == [
        graph.types[output].rank for output in graph.outputs
    ]


@given(graphs(), st.data())
@settings(max_examples=100)
def test_damaged_texts_are_refused_cleanly(graph: Graph, data: st.DataObject) -> None:
    """A text with a piece cut, doubled or replaced is either a well-formed graph or a ModelError,
    nothing else."""
    text = print_graph(graph)
    first, last = sorted(
        (data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text))))
    )
    damaged = (
        text[:first] + data.draw(st.text(max_size=3) | st.just(text[first:last] * 2)) + text[last:]
    )
    places: list[str] = []
    try:
        verify(parse_graph(damaged))
    except ModelError as error:
        places.append(error.where)
    assert all(place.startswith("line ") for place in places)


@pytest.mark.parametrize(
    "inner",
    ["(" * 5000 + "1" + ")" * 5000, "[" * 5000 + "]" * 5000, "9" * 5000, "1e999999", "s" * 5000],
)
def test_hostile_texts_are_refused_cleanly(inner: str) -> None:
    """Deep nesting and endless numbers or names are ModelErrors, not crashes of the reader."""
    with pytest.raises(ModelError):
        parse_graph(f"graph(%0: f32[2]) {{ %1 = softmax(%0) {{axis={inner}}} : f32[2] return %1 }}")
