"""The text form: printer, parser, its errors, digests."""

from __future__ import annotations

import math

import pytest

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.digest import graph_digest
from ingot_compiler.ir.dims import dim_floordiv, dim_max, dim_min, dim_mod, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.text.parse_graph import parse_graph, parse_structure
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.types import TensorType

S0, S1 = symbol("s0"), symbol("s1")
GOLDEN = """\
graph(%0: f32[s0, 3, s1, s1], %1: i64[s2]) {
  %2 = constant() {dtype="f32", shape=[64, 3, 7, 7], weight="ab"} : f32[64, 3, 7, 7] @[0]
  %3 = conv(%0, %2) {dilations=[1, 1], groups=1, pads_after=[3, 3], pads_before=[3, 3], strides=[2, 2]} : \
f32[s0, 64, floordiv(s1 - 1, 2) + 1, floordiv(s1 - 1, 2) + 1] @[1, 4] on "a\\"cc"
  read_dim(%1) {index=0, symbol="s3"} @[2]
  %4 = iota() {dtype="f32", length=2*s3} : f32[2*s3]
  %5 = literal() {dtype="f32", shape=[], value=[-inf]} : f32[]
  %6 = max(%4, %5) : f32[2*s3]
  return %3, %6, %3
}
"""


def golden_graph() -> Graph:
    """The graph of the golden text, built."""
    builder = GraphBuilder([TensorType("f32", (S0, 3, S1, S1)), TensorType("i64", (symbol("s2"),))])
    weight = builder.add(
        "constant", [], {"weight": "ab", "dtype": "f32", "shape": (64, 3, 7, 7)}, (0,)
    )
    two, three, one = (2, 2), (3, 3), (1, 1)
    window: dict[str, Attribute] = {
        "strides": two,
        "pads_before": three,
        "pads_after": three,
        "dilations": one,
        "groups": 1,
    }
    conv = builder.add("conv", [0, weight], window, (1, 4), 'a"cc')
    builder.add("read_dim", [1], {"index": 0, "symbol": "s3"}, (2,))
    iota = builder.add("iota", [], {"dtype": "f32", "length": symbol("s3") * 2})
    literal = builder.add("literal", [], {"dtype": "f32", "shape": (), "value": (-math.inf,)})
    return builder.finish([conv, builder.add("max", [iota, literal]), conv])


def test_the_golden_text_is_printed_and_parsed() -> None:
    """Every part of the text form: several inputs and outputs, dims, ordinals, marks, strings, no
    results."""
    assert print_graph(golden_graph()) == GOLDEN
    assert parse_graph(GOLDEN) == golden_graph()


def test_layout_and_comments_do_not_matter() -> None:
    """White space, comments and any order of attributes lead to the same graph."""
    text = 'graph(%0:f32[2,3]){ # comment\n%1=reduce(%0)\n{keepdims=false,axes=[1],function="sum"}:f32[2] return %1}'
    assert print_graph(parse_graph(text)).splitlines()[1] == (
        '  %1 = reduce(%0) {axes=[1], function="sum", keepdims=false} : f32[2]'
    )


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.5, 1e300, -2.5e-310, 1e16, math.inf, -math.inf, math.nan, 0.1]
)
def test_floats_keep_every_bit(value: float) -> None:
    """Floats are printed so that they parse back to the same bits, signed zeros and NaN
    included."""
    builder = GraphBuilder([])
    text = print_graph(
        builder.finish(
            [builder.add("literal", [], {"dtype": "f64", "shape": (), "value": (value,)})]
        )
    )
    node = parse_graph(text).nodes[0]
    values = node.numbers("value")
    assert repr(values[0]) == repr(value)


def test_bools_and_integers_stay_apart() -> None:
    """True and 1 are equal in Python, but not in the text."""
    for dtype, value, text in (("bool", True, "[true]"), ("i8", 1, "[1]")):
        builder = GraphBuilder([])
        graph = builder.finish(
            [builder.add("literal", [], {"dtype": dtype, "shape": (), "value": (value,)})]
        )
        assert text in print_graph(graph)
        values = parse_graph(print_graph(graph)).nodes[0].numbers("value")
        assert type(values[0]) is type(value)


def test_nested_expressions_are_read_back() -> None:
    """Every function and operator of an expression survives, with its canonical form."""
    dims = (
        dim_floordiv(S0 * S0 - 3 * S1 + 1, 4) * 2, dim_mod(S0, 7) - S1, dim_min(S0, S1 * 2),
        dim_max(dim_min(S0, 5), S1), -S0 + 9,
    )  # fmt: skip
    builder = GraphBuilder([TensorType("f32", (S0, S1))])
    graph = builder.finish([builder.add("dim_values", [], {"values": dims})])
    assert parse_graph(print_graph(graph)) == graph
    assert parse_graph(
        "graph(%0: f32[n]) { %1 = dim_values() {values=[2*(n + 1) - (n - 3)*n]} : i64[1] return %1 }"
    )


def test_regions_are_read_back() -> None:
    """Regions see the enclosing values, number on after them, and may have inputs."""
    scalar, vector = TensorType("bool", ()), TensorType("f32", (4,))
    visible = (scalar, vector)
    then = Graph((), (Node("neg", (1,), (2,)),), (2,), (*visible, vector))
    inner = Graph(
        (2,), (Node("abs", (2,), (3,), (), (), (7,)),), (3, 1), (*visible, vector, vector)
    )
    node = Node("if", (0,), (2, 3), (("depth", 1),), (then, inner), (3,), "acc")
    graph = Graph((0, 1), (node,), (3,), (*visible, vector, vector))
    text = print_graph(graph)
    assert text == (
        "graph(%0: bool[], %1: f32[4]) {\n"
        "  %2, %3 = if(%0) {depth=1} {()\n"
        "    %2 = neg(%1) : f32[4]\n"
        "    return %2\n"
        "  } {(%2: f32[4])\n"
        "    %3 = abs(%2) : f32[4] @[7]\n"
        "    return %3, %1\n"
        '  } : f32[4], f32[4] @[3] on "acc"\n'
        "  return %3\n"
        "}\n"
    )
    assert parse_structure(text) == graph


def test_empty_graphs_are_graphs() -> None:
    """No inputs, no nodes, no outputs."""
    text = "graph() {\n  return\n}\n"
    assert print_graph(parse_graph(text)) == text


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        (
            "graph(%0: f32[2]) {\n  %1 = ad(%0) : f32[2]\n  return %1\n}",
            "line 2, column 8: %1 = ad(%0) : f32[2]",
            "a core op",
        ),
        (
            "graph(%0: f32[2]) {\n  %1 = abs(%0) : f32[3]\n  return %1\n}",
            "line 2, column 8",
            "expected results f32[2], got f32[3]",
        ),
        (
            "graph(%0: f32[2]) {\n  %1 = abs(%0 : f32[2]\n  return\n}",
            "line 2, column 15: %1 = abs(%0 : f32[2]",
            "got ':'",
        ),
        (
            "graph(%0: f32[2]) {\n  %1 = abs(%2) : f32[2]\n  return\n}",
            "line 2, column 12",
            "defined before, got %2",
        ),
        (
            "graph(%0: f32[2]) {\n  %2 = abs(%0) : f32[2]\n  return\n}",
            "line 2, column 3",
            "expected %1 next",
        ),
        (
            "graph(%0: f32[2]) {\n  %1 = abs(%0)\n  return\n}",
            "line 2, column 8",
            "expected 1 result types, got 0",
        ),
        ("graph(%1: f32[2]) { return }", "line 1, column 7", "expected %0 next"),
        (
            "graph(%0: f99[2]) { return }",
            "line 1, column 11",
            "expected an element type out of f32 f64",
        ),
        (
            "graph(%0: f32[s0*2]) { return }",
            "line 1, column 1",
            "a symbol that an input or read_dim binds, got s0",
        ),
        (
            "graph(%0: f32[n, ceil(n, 2)]) { return }",
            "line 1, column 18",
            "a function out of broadcast floordiv max min mod, got ceil",
        ),
        ("graph() {\n  return %0\n}", "line 2, column 10", "defined before"),
        (
            "graph() {\n  x(){a=1, a=2}\n  return\n}",
            "line 2, column 12",
            "expected every attribute once, got a twice",
        ),
        ('graph() { x() {a="\\q"} return }', "line 1, column 18", "JSON escapes"),
        ("graph() { &", "line 1, column 11: graph() { &", "got '&'"),
        ("graph() {\n  return\n", "line 2, column 9: return", "got the end of the text"),
        ("", "line 1, column 1", 'expected "graph", got the end of the text'),
    ],
)
def test_errors_name_line_and_column(text: str, where: str, why: str) -> None:
    """A wrong text is a ModelError that shows the line and says what was expected."""
    with pytest.raises(ModelError) as caught:
        parse_graph(text)
    assert caught.value.where.startswith(where)
    assert why in caught.value.why


def test_the_digest_leaves_out_ordinals_only() -> None:
    """Ordinals do not count; ops, types, attributes, marks and order do."""
    graph = golden_graph()
    assert graph_digest(graph) == graph_digest(parse_graph(print_graph(graph, with_source=False)))
    for old, new in (
        ("groups=1", "groups=2"),
        ("-inf", "-1.0"),
        (' on "a\\"cc"', ""),
        ("%3, %6, %3", "%6, %3, %3"),
    ):
        assert graph_digest(parse_structure(GOLDEN.replace(old, new))) != graph_digest(graph)
