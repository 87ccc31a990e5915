"""Passes keep the meaning: random graphs and random patterns give the same numbers before and
after."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.canonicalise import canonicalise
from ingot_compiler.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from ingot_compiler.passes.eliminate_dead_code import eliminate_dead_code
from ingot_compiler.passes.fold_literals import fold_literals
from ingot_compiler.passes.pipeline import PASSES, Pass, optimize

# min, max and relu are left out of the exact test: which zero they give of 0.0 and -0.0 is nobody's
# promise.
EXACT_UNARY = ("neg", "abs", "reciprocal", "sqrt", "floor", "ceil", "isnan")
EXACT_BINARY = ("add", "sub", "mul", "div", "pow", "equal", "less")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 8.0, 3.0, math.inf, -math.inf, math.nan)
MARKS = ("", "", "", "acc")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs of elementwise and movement ops over f32[2, 3] and literals, with marks; every value
    is returned."""
    builder = GraphBuilder([TensorType("f32", (2, 3)), TensorType("f32", (2, 3))])
    floats = [0, 1]
    outputs: list[int] = []
    for ordinal in range(draw(st.integers(1, 14))):
        mark = draw(st.sampled_from(MARKS))
        kind = draw(st.sampled_from(("unary", "binary", "literal", "move", "select", "cast")))
        first, second = draw(st.sampled_from(floats)), draw(st.sampled_from(floats))
        source = (ordinal,)
        if kind == "literal":
            number = draw(st.sampled_from(NUMBERS))
            attributes: dict[str, Attribute] = {"dtype": "f32", "shape": (), "value": (number,)}
            floats.append(builder.add("literal", (), attributes, source, mark))
            continue
        if kind == "unary":
            value = builder.add(draw(st.sampled_from(EXACT_UNARY)), (first,), {}, source, mark)
        elif kind == "binary":
            value = builder.add(
                draw(st.sampled_from(EXACT_BINARY)), (first, second), {}, source, mark
            )
        elif kind == "select":
            value = builder.add(
                "select", (builder.add("equal", (first, second)), first, second), {}, source, mark
            )
        elif kind == "cast":
            value = builder.add(
                "cast",
                (builder.add("cast", (first,), {"dtype": "f64"}),),
                {"dtype": "f32"},
                source,
                mark,
            )
        else:
            value = move(draw, builder, first)
        outputs.append(value)
        if builder.types[value] in (TensorType("f32", (2, 3)), TensorType("f32", ())):
            floats.append(value)
    return builder.finish(outputs or [0])


def move(draw: st.DrawFn, builder: GraphBuilder, value: int) -> int:
    """A few movements in a row that end in any shape."""
    value = builder.add("broadcast_to", (value,), {"shape": (2, 3)})
    for _ in range(draw(st.integers(1, 3))):
        rows, columns = (int(str(dim)) for dim in builder.types[value].shape)
        choice = draw(st.integers(0, 3))
        if choice == 0:
            value = builder.add("transpose", (value,), {"permutation": (1, 0)})
        elif choice == 1:
            value = builder.add("reshape", (value,), {"shape": (columns, rows)})
        elif choice == 2:
            step = draw(st.sampled_from((1, -1)))
            attributes: dict[str, Attribute] = {
                "starts": (0 if step > 0 else rows - 1, columns - 1),
                "sizes": (rows, 1),
                "steps": (step, -1),
            }
            value = builder.add("slice", (value,), attributes)
        else:
            value = builder.add("concat", (value, value), {"axis": draw(st.integers(0, 1))})
    return value


def inputs_of(graph: Graph, seed: int) -> list[Array]:
    """Random numbers, about half of them special."""
    draw = np.random.default_rng(seed)
    result: list[Array] = []
    for value in graph.inputs:
        shape = [int(str(dim)) for dim in graph.types[value].shape]
        special = draw.choice(np.array(NUMBERS, np.float32), shape)
        result.append(
            np.where(draw.random(shape) < 0.5, special, draw.normal(size=shape)).astype(np.float32)
        )
    return result


def no_constants(digest: str) -> memoryview:
    """These graphs read no weights."""
    raise AssertionError(digest)


def assert_same_bits(before: Sequence[Array], after: Sequence[Array]) -> None:
    """Equal bits, any NaN for a NaN."""
    for left, right in zip(before, after, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
        if left.dtype.kind == "f":
            known = ~np.isnan(left)
            np.testing.assert_array_equal(np.signbit(left)[known], np.signbit(right)[known])


def optimized(graph: Graph) -> Graph:
    """All passes."""
    return optimize(graph).graph


@pytest.mark.parametrize(
    "run",
    [canonicalise, fold_literals, eliminate_common_subexpressions, eliminate_dead_code, optimized],
)
@settings(max_examples=40)
@given(graph=graphs(), seed=st.integers(0, 1000))
@pytest.mark.sweep(60)
def test_exact_passes_keep_every_bit(run: Pass, graph: Graph, seed: int) -> None:
    """NaN, infinities and signed zeros included."""
    after = run(graph)
    inputs = inputs_of(graph, seed)
    assert_same_bits(interpret(graph, inputs, no_constants), interpret(after, inputs, no_constants))
    assert print_graph(parse_graph(print_graph(after))) == print_graph(after)


def twins() -> Graph:
    """Two nodes that differ in their marks alone, and one that differs in nothing."""
    builder = GraphBuilder([TensorType("f32", (2, 3))])
    marks = enumerate(("", "acc", "acc"))
    return builder.finish([builder.add("neg", (0,), {}, (at,), mark) for at, mark in marks])


@settings(max_examples=40)
@example(graph=twins())
@given(graph=graphs())
def test_marks_and_sources_survive(graph: Graph) -> None:
    """Every output keeps its mark, and the passes invent no source ordinal."""
    after = optimize(graph).graph
    marks = [{node.results[0]: node.mark for node in some.nodes} for some in (graph, after)]
    assert [marks[0].get(value, "") for value in graph.outputs] == [
        marks[1].get(value, "") for value in after.outputs
    ]
    known = {ordinal for node in graph.nodes for ordinal in node.source}
    assert {ordinal for node in after.nodes for ordinal in node.source} <= known


@settings(max_examples=60)
@example(graph=twins(), passes=list(PASSES))
@given(graph=graphs(), passes=st.lists(st.sampled_from(PASSES), min_size=1, max_size=8))
def test_marks_of_the_users_nodes_survive_any_passes(graph: Graph, passes: list[Pass]) -> None:
    """In any order of passes, a node has the mark of each node of the model that it stands for: what
    nobody touches stays on its device, and no value moves to another one by being merged."""
    marks = {ordinal: node.mark for node in graph.nodes for ordinal in node.source}
    after = graph
    for run in passes:
        after = run(after)
    for node in after.nodes:
        if node.op != "literal":
            assert {marks[ordinal] for ordinal in node.source} <= {node.mark}
    places = [{node.results[0]: node.mark for node in some.nodes} for some in (graph, after)]
    for before, behind in zip(graph.outputs, after.outputs, strict=True):
        assert places[0].get(before, "") == places[1].get(behind, "")


@settings(max_examples=30)
@given(graph=graphs())
def test_optimize_is_stable_and_independent_of_numbering(graph: Graph) -> None:
    """A second run changes nothing; reading the text back first changes nothing."""
    after = optimize(graph).graph
    for again in (after, parse_graph(print_graph(graph))):
        assert print_graph(optimize(again).graph) == print_graph(after)


@st.composite
def attentions(draw: st.DrawFn) -> Graph:
    """Decomposed attention with scales, masks, guards and key layouts as exporters write them."""
    batch, heads, queries, keys, depth = (draw(st.integers(1, 3)) for _ in range(5))
    shape_q, shape_k = (batch, heads, queries, depth), (batch, heads, keys, depth)
    mask = TensorType("bool", (batch, 1, queries, keys))
    builder = GraphBuilder([TensorType("f32", shape_q), *[TensorType("f32", shape_k)] * 2, mask])
    add = builder.add

    def literal(number: float) -> int:
        return add("literal", (), {"dtype": "f32", "shape": (), "value": (number,)})

    query, key = 0, add("transpose", (1,), {"permutation": (0, 1, 3, 2)})
    if draw(st.booleans()):
        joined = add("reshape", (1,), {"shape": (batch * heads, keys, depth)})
        turned = add("transpose", (joined,), {"permutation": (0, 2, 1)})
        key = add("reshape", (turned,), {"shape": (batch, heads, depth, keys)})
    if draw(st.booleans()):
        query = add("mul", (query, literal(0.5)))
    if draw(st.booleans()):
        key = add("div", (key, literal(3.0)))
    scores = add("matmul", (query, key))
    if draw(st.booleans()):
        scores = add("mul", (literal(0.25), scores))
    masking = draw(st.sampled_from(("none", "add", "select")))
    if masking == "add":
        scores = add("add", (scores, add("select", (3, literal(0.0), literal(-math.inf)))))
    elif masking == "select":
        scores = add("select", (3, scores, literal(-math.inf)))
    weights = add("softmax", (scores,), {"axis": 3})
    if draw(st.booleans()):
        weights = add("select", (add("isnan", (weights,)), literal(0.0), weights))
    return builder.finish((add("matmul", (weights, 2)),))


@settings(max_examples=60)
@given(graph=attentions(), seed=st.integers(0, 1000))
def test_attention_is_found_and_keeps_its_meaning(graph: Graph, seed: int) -> None:
    """Also for rows without any key: NaN without the guard, zero with it."""
    after = optimize(graph).graph
    assert "attention" in {node.op for node in after.nodes}
    assert not {"softmax", "matmul"} & {node.op for node in after.nodes}
    draw = np.random.default_rng(seed)
    shapes = [tuple(int(str(dim)) for dim in graph.types[value].shape) for value in graph.inputs]
    inputs: list[Array] = [draw.normal(size=shape).astype(np.float32) for shape in shapes[:3]]
    inputs.append(draw.random(shapes[3]) < 0.4)
    (before,), (fused,) = (interpret(some, inputs, no_constants) for some in (graph, after))
    np.testing.assert_allclose(before, fused, rtol=1e-5, atol=1e-6)
