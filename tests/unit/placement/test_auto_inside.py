"""``--place auto`` inside of branches and bodies: the cheapest placement by its own prediction,
counted in the placed graph, copy by copy; how often what is inside counts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import assert_same_bits, make_model, node, tensor
from tests.harness.lowering_harness import normal
from tests.unit.placement.test_marks_inside import X, called, graph
from tests.unit.placement.test_placement_auto import DEVICES, NAMES, TIMES

import ingot
import ingot_runtime
from ingot_build_rules.making.options.device_table import DeviceTable
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.graph import AUTO, Graph, OptimizedGraph
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.placement.control import nodes_inside
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.how_often import OFTEN_MAX, how_often
from ingot_compiler.placement.op_work import setting_of
from ingot_compiler.placement.place import place
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.placing_rules import PlacingRules
from ingot_compiler.placement.predicted_time import predicted_picoseconds
from ingot_compiler.placement.verify_placed import verify_placed

T = "f32[64, 64]"
# In "branches" %3 is read inside on any device and outside; the else branch gives an outer value.
BRANCHES = """graph(%0: T, %1: bool[]) {
  %2 = exp(%0) : T @[0] on "A"
  %3 = matmul(%2, %0) : T @[1] on "B"
  %4 = if(%1) {symbols=[]} {()
    %4 = matmul(%3, %2) : T @[2] on "C"
    %5 = neg(%4) : T @[3] on "D"
    %6 = add(%5, %3) : T @[4] on "E"
    return %6
  } {()
    %4 = matmul(%3, %0) : T @[5] on "F"
    return %4
  } : T @[6]
  %5 = add(%4, %3) : T @[7] on "G"
  return %5
}
"""
# A body that carries a value, reads one of outside twice, and has a branch inside.
BODY = """graph(%0: T, %1: bool[]) {
  %2 = exp(%0) : T @[0] on "A"
  %3 = literal() {dtype="i64", shape=[], value=[COUNT]} : i64[] @[1]
  %4 = literal() {dtype="bool", shape=[], value=[true]} : bool[] @[1]
  %5 = loop(%3, %4, %0) {iterations=COUNT, symbols=[]} {(%5: i64[], %6: bool[], %7: T)
    %8 = matmul(%7, %2) : T @[2] on "B"
    %9 = exp(%8) : T @[3] on "C"
    %10 = if(%1) {symbols=[]} {()
      %10 = matmul(%9, %2) : T @[4] on "D"
      %11 = add(%10, %8) : T @[5] on "E"
      return %11
    } {()
      %10 = neg(%9) : T @[6] on "F"
      return %10
    } : T @[7]
    return %6, %10
  } : T @[8]
  %6 = neg(%5) : T @[9] on "G"
  return %6
}
"""
TEXTS = {"branches": BRANCHES, "once": BODY.replace("COUNT", "1"), "often": BODY.replace("COUNT", "9")}  # fmt: skip


def marked(text: str, marks: Sequence[str]) -> OptimizedGraph:
    """The graph with these marks, in the order of its letters."""
    for letter, mark in zip("ABCDEFG", marks, strict=True):
        text = text.replace(f'"{letter}"', f'"{mark}"')
    return OptimizedGraph(parse_graph(text.replace("T", T)))


def placed_by(text: str, marks: Sequence[str], count: int) -> PlacedGraph:
    """It placed over the first ``count`` devices."""
    rules = PlacingRules(times=TIMES[:count])
    placed = place(marked(text, marks), DEVICES[:count], rules)
    verify_placed(placed)
    return placed


def predicted(text: str, marks: Sequence[str], count: int) -> int:
    """What it is predicted to take."""
    return predicted_picoseconds(placed_by(text, marks, count), TIMES[:count])


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("count", "free"), [(2, 7), (3, 5)])
def test_no_placement_is_better(name: str, count: int, free: int) -> None:
    """Of all placements of what is left to us, inside and outside, none is predicted to take less,
    whatever the others are marked."""
    choose = random.Random(f"{name} {count}")
    for _ in range(2):
        marks = [AUTO] * free + choose.choices(("", *NAMES[:count]), k=7 - free)
        choose.shuffle(marks)
        open_at = [index for index, mark in enumerate(marks) if mark == AUTO]
        every: list[int] = []
        for names in itertools.product(NAMES[:count], repeat=free):
            chosen: Mapping[int, str] = dict(zip(open_at, names, strict=True))
            each = [chosen.get(index, mark) for index, mark in enumerate(marks)]
            every.append(predicted(TEXTS[name], each, count))
        assert predicted(TEXTS[name], marks, count) == min(every)
        assert len(set(every)) > 9


@pytest.mark.parametrize("most", [0, 1, 2, 9])
def test_copies_that_are_variables(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies inside cost the same however they are part of the problem."""
    texts = TEXTS.values()
    before = [predicted(text, [AUTO] * 7, 3) for text in texts]
    monkeypatch.setattr("ingot_compiler.placement.choose_devices._JOINT_UNITS_MAX", most)
    assert [predicted(text, [AUTO] * 7, 3) for text in texts] == before


def test_where_tables_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for few combinations the result is no worse than one device, inside too."""
    monkeypatch.setattr("ingot_compiler.placement.least_cost.COMBINATION_COUNT_MAX", 4)
    for text in TEXTS.values():
        alone = [predicted(text, [name] * 7, 3) for name in NAMES]
        assert predicted(text, [AUTO] * 7, 3) <= min(alone)


def inside(placed: PlacedGraph) -> dict[str, str]:
    """The device of each node inside, by op; of several the last."""
    found = (each for node in placed.graph.nodes for each in nodes_inside(node))
    return {each.op: each.mark or "host" for each in found if each.op != "copy"}


OFTEN = """graph(%0: T) {
  %1 = literal() {dtype="i64", shape=[], value=[COUNT]} : i64[]
  %2 = literal() {dtype="bool", shape=[], value=[true]} : bool[]
  %3 = exp(%0) : T @[0] on "A"
  %4 = loop(%1, %2) {iterations=COUNT, symbols=[]} {(%4: i64[], %5: bool[])
    %6 = matmul(%3, %3) : T @[1] on "B"
    %7 = reduce(%6) {axes=[0, 1], function="sum", keepdims=false} : f32[] @[2] on "C"
    return %5, %7
  } : f32[COUNT] @[3]
  return %4, %3
}
"""


def often(count: int, marks: Sequence[str]) -> PlacedGraph:
    """A body that runs so often, and what it reads, placed over two devices."""
    text = OFTEN.replace("COUNT", str(count)).replace("T", T)
    for letter, mark in zip("ABC", marks, strict=True):
        text = text.replace(f'"{letter}"', f'"{mark}"')
    rules = PlacingRules(times=TIMES[:2])
    return place(OptimizedGraph(parse_graph(text)), DEVICES[:2], rules)


@pytest.mark.parametrize(("count", "device"), [(1, "host"), (2, "acc"), (50, "acc")])
def test_it_depends_on_how_often_a_body_runs(count: int, device: str) -> None:
    """A body goes to the faster device if it runs often; what it reads is copied once, so that it
    stays where the caller wants it."""
    found = often(count, [AUTO] * 3)
    (made,) = [node.results[0] for node in found.graph.nodes if node.op == "exp"]
    assert DEVICES[found.device_of[made]].name == "host"
    assert inside(found) == {"matmul": device, "reduce": device}
    every = [often(count, marks) for marks in itertools.product(NAMES[:2], repeat=3)]
    least = min(predicted_picoseconds(each, TIMES[:2]) for each in every)
    assert predicted_picoseconds(found, TIMES[:2]) == least


def test_the_same_again() -> None:
    """The same graph is placed the same, and a graph that is placed keeps its places."""
    first, again = (placed_by(BRANCHES, [AUTO] * 7, 3) for _ in range(2))
    assert first == again


def loop_of(attributes: str, limit: str) -> Graph:
    """A loop of this many iterations."""
    return parse_graph(
        f"""graph(%0: i64[], %1: bool[], %2: f32[n]) {{
      %3 = literal() {{dtype="i64", shape=[], value=[5]}} : i64[]
      %4 = loop({limit}, %1, %2) {{{attributes}}} {{(%4: i64[], %5: bool[], %6: f32[n])
        %7 = neg(%6) : f32[n]
        return %5, %7
      }} : f32[n]
      return %4
    }}
    """
    )


@pytest.mark.parametrize(
    ("attributes", "limit", "often"),
    [
        ("iterations=7, symbols=[]", "%0", 7),  # known
        ("iterations=n, symbols=[]", "%0", 64),  # as other open sizes
        ('iterations=k, symbols=["k"]', "%0", 64),  # while a condition holds
        ('iterations=k, symbols=["k"]', "%3", 5),  # and at most five times
        ("iterations=0, symbols=[]", "%0", 0),
        ("iterations=1000000000, symbols=[]", "%0", OFTEN_MAX),
    ],
)
def test_how_often_a_body_counts(attributes: str, limit: str, often: float) -> None:
    """As often as its loop says, else as open sizes do, or as the trip count where that is less."""
    read = loop_of(attributes, limit)
    assert how_often(read.nodes[-1], setting_of(read), 1.0) == (often,)


def test_how_often_a_branch_counts() -> None:
    """One is as likely as the other."""
    read = marked(BRANCHES, [AUTO] * 7).graph
    assert how_often(read.nodes[2], setting_of(read), 8.0) == (4.0, 4.0)


def heavy() -> ModelProto:
    """A loop over products that are worth a device that costs nothing to launch."""
    inside_nodes = [
        called("/body/product", node("MatMul", "v w", "p")),
        called("/body/tanh", node("Tanh", "p", "n")),
        called("/body/go", node("Identity", "g", "go")),
    ]
    body = graph(
        "body",
        inside_nodes,
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("g", TensorProto.BOOL, []), tensor("v", [4, 6])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), tensor("n", [4, 6])],
    )  # fmt: skip
    nodes = [called("/loop", helper.make_node("Loop", ["count", "", "x"], ["y"], body=body))]
    weights: dict[str, Array] = {"w": normal(0, 6, 6), "count": np.array(3, np.int64)}
    return make_model(nodes, [tensor("x", [4, 6])], [tensor("y", [4, 6])], weights)


def test_bits_and_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What goes to a device by cost gives the bits of the host; ``why-device`` tells what was
    compared, and ``--to placed`` too."""
    slow, fast = (DeviceCosts(rate, rate, rate, rate, 0, 0.0) for rate in (1e3, 1e12))

    def costs(_: DeviceTable) -> tuple[DeviceCosts, ...]:
        return slow, fast

    monkeypatch.setattr(DeviceTable, "costs", costs)
    alone = ingot.compile(heavy(), targets=["x86-64-v3"]).to_bytes()
    expected = ingot_runtime.load(alone).run({"x": X})
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(heavy().SerializeToString())
    words = ["compile", "m.onnx", "--target", "x86-64-v3", "--device", "acc=cpu", "--place"]
    assert main([*words, "auto", "-o", "m.ingot"]) == 0
    for executor in ("aot", "vm"):
        with ingot_runtime.load("m.ingot", executor=executor) as session:
            assert_same_bits(session.run({"x": X}), expected)
            assert session.device_counts().launches["acc"] > 0
    capsys.readouterr()
    assert main(["why-device", "m.ingot", "/body/*"]) == 0
    told = capsys.readouterr().out
    assert "/body/product is on acc" in told
    assert "left to the cost model by --place '*=auto'; with its copies it takes host" in told
    assert main([*words, "auto", "--to", "placed", "-q"]) == 0
    assert "inside 1: auto [" in capsys.readouterr().out


def test_control_flow_is_called_by_its_own_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The slices that a Scan reads are made of it, and do not answer for it."""
    inside_nodes = [called("/body/add", node("Add", "s r", "n")), called("/body/tanh", node("Tanh", "n", "t"))]  # fmt: skip
    body = graph("body", inside_nodes, [tensor("s", [6]), tensor("r", [6])], [tensor("n", [6]), tensor("t", [6])])  # fmt: skip
    scan = helper.make_node("Scan", ["w", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    outputs = [tensor("y", [4, 6]), tensor("last", [6])]
    model = make_model([called("/scan", scan)], [tensor("x", [4, 6])], outputs, {"w": normal(0, 6)})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    bundle = str(tmp_path / "m.ingot")
    words = ["compile", str(tmp_path / "m.onnx"), "-q", "--device", "acc=cpu", "--place", "auto"]
    assert main([*words, "-o", bundle]) == 0
    assert main(["why-device", bundle, "/scan"]) == 0
    assert capsys.readouterr().out == "/scan is on host\n  /scan (Scan): only the host runs it\n"
    assert main(["why-device", bundle, "/body/add"]) == 0
    assert "left to the cost model" in capsys.readouterr().out
