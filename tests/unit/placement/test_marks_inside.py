"""Nodes inside of branches and bodies on a device: each alone and all together, the bits of the
host alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import assert_same_bits, make_model, node, tensor
from tests.harness.lowering_harness import HOST_ALONE, normal
from tests.unit.placement.test_placement_auto import TIMES as THREE_TIMES

import ingot
import ingot_runtime
from ingot_build_rules.making.report.placement_report import fallen_back
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import ModelError, UnsupportedError
from ingot_compiler.ir.graph import Graph, Names, Node, OptimizedGraph
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.placement.control import nodes_inside
from ingot_compiler.placement.parse_placed import parse_placed
from ingot_compiler.placement.place import place
from ingot_compiler.placement.placing_rules import PlacingRules
from ingot_compiler.placement.print_placed import print_placed
from ingot_compiler.placement.verify_placed import verify_placed
from ingot_compiler.placement.virtual_device import DeclaredDevice, VirtualDevice

X = np.random.default_rng(3).standard_normal((4, 6)).astype(np.float32)
DEVICE = {"acc": "cpu:1"}


def called(name: str, made: NodeProto) -> NodeProto:
    """The node under a name."""
    made.name = name
    return made


def graph(name: str, nodes: Sequence[NodeProto], inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto],
          weights: Mapping[str, Array] | None = None) -> GraphProto:  # fmt: skip
    """A graph that is an attribute."""
    stored = [numpy_helper.from_array(value, key) for key, value in (weights or {}).items()]
    return helper.make_graph(nodes, name, inputs, outputs, stored)


def branches() -> ModelProto:
    """An If whose branches read what was computed outside, weights of their own and of the
    graph."""
    then = graph(
        "then",
        [called("/then/one", node("MatMul", "h w", "t0")), called("/then/two", node("Add", "t0 b", "t1")),
         called("/then/three", node("Relu", "t1", "t"))],
        [], [tensor("t", [4, 6])], {"b": normal(1, 6)},
    )  # fmt: skip
    other = graph(
        "else", [called("/else/one", node("Neg", "h", "e0")), called("/else/two", node("Mul", "e0 x", "e"))],
        [], [tensor("e", [4, 6])],
    )  # fmt: skip
    nodes = [
        called("/h", node("Exp", "x", "h")),
        called("/s", node("ReduceSum", "x", "s", keepdims=0)),
        called("/c", node("Greater", "s zero", "c")),
        called("/if", node("If", "c", "r", then_branch=then, else_branch=other)),
        called("/y", node("Mul", "r h", "y")),
    ]
    weights = {"w": normal(0, 6, 6), "zero": np.array(0, np.float32)}
    return make_model(nodes, [tensor("x", [4, 6])], [tensor("y", [4, 6])], weights)


def body() -> ModelProto:
    """A Loop that carries a value, collects rows, and has an If inside."""
    then = graph("then", [called("/body/then", node("Tanh", "p", "t"))], [], [tensor("t", [4, 6])])
    other = graph(
        "else", [called("/body/else", node("Sigmoid", "p", "e"))], [], [tensor("e", [4, 6])]
    )
    inside = graph(
        "body",
        [called("/body/product", node("MatMul", "v w", "p")),
         called("/body/odd", node("Mod", "i two", "odd")),
         called("/body/is", node("Cast", "odd", "is", to=TensorProto.BOOL)),
         called("/body/if", node("If", "is", "n", then_branch=then, else_branch=other)),
         called("/body/row", node("ReduceSum", "n axis", "row", keepdims=0)),
         called("/body/go", node("Identity", "g", "go"))],
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("g", TensorProto.BOOL, []), tensor("v", [4, 6])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), tensor("n", [4, 6]),
         tensor("row", [6])],
        {"two": np.array(2, np.int64), "axis": np.array([0], np.int64)},
    )  # fmt: skip
    nodes = [
        called("/before", node("Abs", "x", "a")),
        called(
            "/loop", helper.make_node("Loop", ["count", "", "a"], ["last", "rows"], body=inside)
        ),
        called("/y", node("Add", "last x", "y")),
    ]
    weights: dict[str, Array] = {"w": normal(0, 6, 6), "count": np.array(3, np.int64)}
    outputs = [tensor("y", [4, 6]), tensor("rows", [3, 6])]
    return make_model(nodes, [tensor("x", [4, 6])], outputs, weights)


def late() -> ModelProto:
    """A branch whose sizes the data decide."""
    then = graph(
        "then",
        [called("/then/where", node("NonZero", "h", "z")), called("/then/cast", node("Cast", "z", "f", to=1)),
         called("/then/neg", node("Neg", "f", "t"))],
        [], [tensor("t", [2, "n"])],
    )  # fmt: skip
    other = graph(
        "else",
        [called("/else/cut", node("Slice", "h from to", "e0")), called("/else/exp", node("Exp", "e0", "e"))],
        [], [tensor("e", [2, "m"])],
        {"from": np.array([0], np.int64), "to": np.array([2], np.int64)},
    )  # fmt: skip
    nodes = [
        called("/h", node("Relu", "x", "h")),
        called("/s", node("ReduceSum", "x", "s", keepdims=0)),
        called("/c", node("Greater", "s zero", "c")),
        called("/if", node("If", "c", "r", then_branch=then, else_branch=other)),
        called("/y", node("Abs", "r", "y")),
    ]
    weights: dict[str, Array] = {"zero": np.array(0, np.float32)}
    return make_model(nodes, [tensor("x", [4, 6])], [tensor("y", [2, "k"])], weights)


def late_body() -> ModelProto:
    """A body in which a value grows as the data decide."""
    inside = graph(
        "body",
        [called("/body/flag", node("Greater", "v zero", "f")),
         called("/body/kept", node("Compress", "x f", "k", axis=0)),
         called("/body/neg", node("Neg", "k", "n")),
         called("/body/sum", node("ReduceSum", "n axes", "s", keepdims=0)),
         called("/body/next", node("Add", "v s", "w")),
         called("/body/go", node("Identity", "g", "go"))],
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("g", TensorProto.BOOL, []), tensor("v", [4])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), tensor("w", [4])],
        {"axes": np.array([0, 1], np.int64)},
    )  # fmt: skip
    nodes = [
        called("/start", node("ReduceMean", "x one", "m", keepdims=0)),
        called("/loop", helper.make_node("Loop", ["count", "", "m"], ["last"], body=inside)),
        called("/y", node("Abs", "last", "y")),
    ]
    weights: dict[str, Array] = {
        "zero": np.array(0, np.float32),
        "one": np.array([1], np.int64),
        "count": np.array(4, np.int64),
    }
    return make_model(nodes, [tensor("x", [4, 6])], [tensor("y", [4])], weights)


MODELS = {"branches": branches, "body": body, "late": late, "late_body": late_body}
CONTROL = ("If", "Loop")


def names_of(nodes: Sequence[NodeProto]) -> list[str]:
    """All nodes that a device may run, those inside too."""
    found: list[str] = []
    for each in nodes:
        if each.op_type not in CONTROL:
            found.append(each.name)
        for attribute in each.attribute:
            found += names_of(attribute.g.node)
    return found


def results(model: ModelProto, places: Mapping[str, str], devices: Mapping[str, str] = DEVICE,
            executors: Sequence[str] = ("aot", "vm")) -> dict[str, Array]:  # fmt: skip
    """The outputs for both conditions, native and stepped alike."""
    found: dict[str, Array] = {}
    targets = ["x86-64-v3"]
    bundle = ingot.compile(
        model, targets=targets, devices=dict(devices) if places else {}, place=places
    ).to_bytes()
    for executor, sign in itertools.product(executors, (1, -1)):
        with ingot_runtime.load(bundle, executor=executor) as session:
            for name, value in session.run({"x": sign * X}).items():
                same = found.setdefault(f"{name} {sign}", value)
                assert same.tobytes() == value.tobytes()
    return found


@pytest.mark.broad
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sweep(4)
def test_each_node_alone_and_all(name: str) -> None:
    """Wherever the nodes inside run, and those around them, the bits are those of the host."""
    model = MODELS[name]()
    names = names_of(model.graph.node)
    alone = results(model, {})
    inside = [each for each in names if each.count("/") > 1]
    outside = [each for each in names if each not in inside]
    for marked in (*([each] for each in inside), inside, outside, names):
        assert_same_bits(alone, results(model, dict.fromkeys(marked, "acc"), executors=("aot",)))
    assert_same_bits(alone, results(model, dict.fromkeys(names, "acc")))
    turns = dict(zip(names, itertools.cycle(("acc", "other")), strict=False))
    two = {"acc": "cpu:1", "other": "null"}
    assert_same_bits(alone, results(model, turns, two, ("vm",)))


def test_a_branch_that_is_not_taken_copies_nothing() -> None:
    """What a branch reads from another device is copied inside of it, what is there already is
    not."""
    places = {"/h": "acc", "/then/*": "acc", "/y": "acc"}
    bundle = ingot.compile(branches(), devices=DEVICE, place=places).to_bytes()
    taken: dict[int, Mapping[tuple[str, str], tuple[int, int]]] = {}
    positive = np.abs(X)
    for sign in (1, -1):
        with ingot_runtime.load(bundle) as session:
            session.run({"x": sign * positive})
            taken[sign] = session.device_counts().copies
    size = X.nbytes
    # x, then the result of the If; h, for the other branch, what the branch gives, the output
    assert taken[1] == {("host", "acc"): (2, 2 * size), ("acc", "host"): (3, 3 * size)}
    assert taken[-1] == {("host", "acc"): (2, 2 * size), ("acc", "host"): (2, 2 * size)}


@pytest.mark.opencl
def test_opencl() -> None:
    """On a driver's device as well."""
    model = body()
    names = names_of(model.graph.node)
    alone = results(model, {})
    found = results(model, dict.fromkeys(names, "acc"), {"acc": "opencl"})
    for name, value in alone.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)


def test_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node inside has its glob as its reason, or nothing; the line counts it."""
    model, bundle = tmp_path / "m.onnx", str(tmp_path / "m.ingot")
    model.write_bytes(branches().SerializeToString())
    words = ["--device", "acc=cpu", "--place", "/then/*=acc", "--place", "/then/three=host"]
    assert main(["compile", str(model), *words, "-o", bundle]) == 0
    assert "host 8 nodes" in (told := capsys.readouterr().out)
    assert "acc 2 nodes" in told
    for name, lines in {
        "/then/one": ["put on acc by --place '/then/*=acc'"],
        "/then/three": ["put on host by --place '/then/three=host', not '/then/*=acc'"],
        "/else/one": ["nothing says otherwise"],
    }.items():
        assert main(["why-device", bundle, name]) == 0
        text = capsys.readouterr().out
        assert all(line in text for line in lines), text


TIMES = THREE_TIMES[:2]
CHOICE = """
graph(%0: f32[4], %1: bool[]) {
  %2 = if(%1) {symbols=[]} {()
    %2 = tanh(%0) : f32[4] @[1] on "acc"
    %3 = exp(%2) : f32[4] @[2] on "acc"
    return %3
  } {()
    %2 = exp(%0) : f32[4] @[3] on "auto"
    return %2
  } : f32[4] @[0]
  return %2
}
"""


def test_a_node_that_falls_back() -> None:
    """What a device has no code for is refused by its name, or runs on the host, which is told;
    where the host is faster, what is left to us stays."""

    def no_tanh(node: Node, _graph: Graph) -> str:
        return "no code for tanh" if node.op == "tanh" else ""

    table = (*HOST_ALONE, DeclaredDevice("acc", VirtualDevice("null", 0)))
    graph = OptimizedGraph(parse_graph(CHOICE))
    with pytest.raises(UnsupportedError) as caught:
        place(graph, table, PlacingRules((no_tanh,), TIMES))
    assert (caught.value.what, caught.value.why) == ("tanh on device acc", "no code for tanh")
    placed = place(graph, table, PlacingRules((no_tanh,), TIMES, "warn"))
    assert parse_placed(print_placed(placed)) == placed
    verify_placed(placed)
    (choice,) = (node for node in placed.graph.nodes if node.op == "if")
    inside = [(node.op, node.mark) for node in nodes_inside(choice)]
    assert inside == [("tanh", ""), ("copy", "acc"), ("exp", "acc"), ("copy", ""), ("exp", "")]
    nodes = tuple((name, name.upper()) for name in ("if", "tanh", "exp", "other"))
    names = Names("m", ("x", "c"), ("y",), nodes, ())
    told = fallen_back(placed, names)
    assert told == ["node 'tanh' (TANH) runs on the host: device acc has no code for it"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('%4 = exp(%3) : f32[4] @[2] on "acc"', '%4 = exp(%2) : f32[4] @[2] on "acc"', "each crossing is a copy"),
        ('%4 = exp(%3) : f32[4] @[2] on "acc"', '%4 = exp(%3) : f32[4] @[2] on "ac"', "a node inside names its device"),
        ("return %5", "return %4", "outputs of a region"),
        ('destination="acc"', 'destination="host"', "a copy goes to its device"),
        ("inside 2: auto [501600, 4003360]\n", "", "each node inside has a reason"),
        ("inside 1: marked", 'inside 1: fallback "ac"', "a reason names a device"),
        ("[501600, 4003360]", "[1]", "a reason compares all devices"),
    ],
)  # fmt: skip
def test_placed_texts_that_lie(old: str, new: str, why: str) -> None:
    """Values of another device, devices that are not there, results on a device."""
    table = (*HOST_ALONE, DeclaredDevice("acc", VirtualDevice("null", 0)))

    def no_tanh(node: Node, _graph: Graph) -> str:
        return "no" if node.op == "tanh" else ""

    rules = PlacingRules((no_tanh,), TIMES, "allow")
    text = print_placed(place(OptimizedGraph(parse_graph(CHOICE)), table, rules))
    assert old in text
    with pytest.raises(ModelError, match=why):
        parse_placed(text.replace(old, new))
