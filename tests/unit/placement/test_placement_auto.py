"""``--place auto``: the cheapest placement by its own prediction, whatever is marked beside it, in a
time that large networks can afford; and what happens where a device has no code."""

from __future__ import annotations

import importlib
import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_compiler.backends.backend import Backend, RefuseOpFor
from ingot_compiler.backends.registry import BACKENDS
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import AUTO, Graph, Node, OptimizedGraph
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.place import place
from ingot_compiler.placement.place_reason import PlaceReason
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.placing_rules import Fallback, PlacingRules
from ingot_compiler.placement.predicted_time import DeviceTimes, predicted_picoseconds
from ingot_compiler.placement.print_placed import print_placed
from ingot_compiler.placement.verify_placed import verify_placed
from ingot_compiler.placement.virtual_device import DeclaredDevice, VirtualDevice, of_target

NAMES = ("host", "acc", "other")
DEVICES = (
    DeclaredDevice("host", of_target("x86-64-v3")),
    DeclaredDevice("acc", VirtualDevice("null", 0)),
    DeclaredDevice("other", VirtualDevice("null", 1)),
)
_SINGLE: tuple[OpName, ...] = ("exp", "neg")
# Products are faster on acc, the rest on other; copies cost as much as some of the nodes.
TIMES = (
    DeviceTimes(DeviceCosts(60e9, 4e9, 10e9, 8e9, 0, 1e-6)),
    DeviceTimes(DeviceCosts(600e9, 40e9, 100e9, 80e9, 0, 2e-6, 3e-6, 5e9)),
    DeviceTimes(DeviceCosts(100e9, 90e9, 200e9, 150e9, 0, 1e-6, 2e-6, 9e9)),
)


def network(marks: Sequence[str], seed: int) -> OptimizedGraph:
    """A random network of as many nodes: chains, branches, joins, values with several readers."""
    choose = random.Random(seed)
    builder = GraphBuilder([TensorType("f32", (64, 64))])
    values = [0]
    for index, mark in enumerate(marks):
        recent = values[-6:]
        operands = [recent[-1] if choose.random() < 0.6 else choose.choice(recent)]
        if choose.random() < 0.4:
            operands.append(choose.choice(recent))
        joins: tuple[OpName, ...] = ("add", "matmul")
        op = choose.choice(joins if len(operands) == 2 else _SINGLE)
        values.append(builder.add(op, operands, {}, (index,), mark))
    read = {operand for node in builder.finish((0,)).nodes for operand in node.operands}
    return OptimizedGraph(builder.finish([value for value in values if value not in read]))


def placed_by(marks: Sequence[str], seed: int, count: int) -> PlacedGraph:
    """Such a network over the first ``count`` devices."""
    return place(network(marks, seed), DEVICES[:count], PlacingRules(times=TIMES[:count]))


def predicted(marks: Sequence[str], seed: int, count: int) -> int:
    """What its placement is predicted to take, counted in the placed graph, copy by copy."""
    return predicted_picoseconds(placed_by(marks, seed, count), TIMES[:count])


@pytest.mark.broad
@pytest.mark.parametrize(("count", "nodes"), [(2, 7), (3, 4)])
@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 30), data=st.data())
def test_small_networks_are_placed_best(
    count: int, nodes: int, seed: int, data: st.DataObject
) -> None:
    """No placement of the nodes that are left to us costs less, whatever the others are marked."""
    kinds = (AUTO, AUTO, AUTO, "", *NAMES[:count])
    marks = [data.draw(st.sampled_from(kinds)) for _ in range(nodes)]
    free = [index for index, mark in enumerate(marks) if mark == AUTO]
    every = itertools.product(NAMES[:count], repeat=len(free))
    table = [dict(zip(free, names, strict=True)) for names in every]
    least = min(
        predicted([names.get(index, mark) for index, mark in enumerate(marks)], seed, count)
        for names in table
    )
    assert predicted(marks, seed, count) == least


@settings(max_examples=10)
@given(st.integers(0, 1 << 30), st.integers(2, 3))
def test_no_device_alone_is_better(seed: int, count: int) -> None:
    """Larger networks, too, are never placed worse than on one device."""
    auto = predicted([AUTO] * 60, seed, count)
    assert all(auto <= predicted([name] * 60, seed, count) for name in NAMES[:count])


def test_copies_of_values_with_many_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that are variables of their own cost what those cost that are part of a table."""
    least: list[list[int]] = []
    for most in (0, 2, 4, 9):
        monkeypatch.setattr("ingot_compiler.placement.choose_devices._JOINT_UNITS_MAX", most)
        least.append([predicted([AUTO] * 30, seed, 3) for seed in range(6)])
    assert least == [least[0]] * len(least)


def test_two_devices_of_a_kind_do_not_share_a_memory() -> None:
    """A copy between devices with the same costs is a copy."""
    marks, twins = [AUTO, "other", AUTO, "acc", AUTO, "other"], (TIMES[0], TIMES[1], TIMES[1])
    every = [
        predicted_picoseconds(place(network(names, 2), DEVICES, PlacingRules(times=twins)), twins)
        for names in (
            [a, "other", b, "acc", c, "other"] for a, b, c in itertools.product(NAMES, repeat=3)
        )
    ]
    found = place(network(marks, 2), DEVICES, PlacingRules(times=twins))
    assert predicted_picoseconds(found, twins) == min(every)


def test_where_tables_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for few combinations the result is still no worse than one device, and valid."""
    monkeypatch.setattr("ingot_compiler.placement.least_cost.COMBINATION_COUNT_MAX", 8)
    for seed in range(6):
        found = placed_by([AUTO] * 40, seed, 3)
        verify_placed(found)
        cost = predicted_picoseconds(found, TIMES)
        assert all(cost <= predicted([name] * 40, seed, 3) for name in NAMES)


def test_marks_are_fixed() -> None:
    """``auto`` leaves every other mark as it is; the same graph is placed the same again."""
    marks = [AUTO, "other", AUTO, "", "acc", AUTO, "host", AUTO]
    found = placed_by(marks, 5, 3)
    verify_placed(found)
    assert print_placed(found) == print_placed(placed_by(marks, 5, 3))
    for node in found.graph.nodes:
        if node.op != "copy" and node.mark in NAMES:
            assert found.devices[found.device_of[node.results[0]]].name == node.mark


def test_reasons_tell_the_alternatives() -> None:
    """Of a node that the cost model placed, what each device would have cost; it took the least."""
    found = placed_by([AUTO] * 12, 3, 3)
    told = [reason for reason in found.reasons if reason.kind == "auto"]
    assert len(told) >= 11
    for value, reason in enumerate(found.reasons):
        if reason.kind == "auto":
            assert min(reason.picoseconds) == reason.picoseconds[found.device_of[value]]


def refuses_products(node: Node, _graph: Graph) -> Text:
    """A device without products."""
    return "acc runs elementwise ops alone" if node.op == "matmul" else ""


def product(mark: str) -> OptimizedGraph:
    """exp -> matmul -> neg, the product with this mark."""
    builder = GraphBuilder([TensorType("f32", (4, 4))])
    first = builder.add("exp", (0,), {}, (0,), "acc")
    second = builder.add("matmul", (first, first), {}, (1,), mark)
    return OptimizedGraph(builder.finish((builder.add("neg", (second,), {}, (2,)),)))


RULES = PlacingRules((refuses_products,), TIMES[:2])


def test_a_mark_for_a_device_without_code_is_refused() -> None:
    """By node, op and device, with what the device runs."""
    with pytest.raises(UnsupportedError) as caught:
        place(product("acc"), DEVICES[:2], RULES)
    assert (caught.value.what, caught.value.where) == ("matmul on device acc", "node #1")
    assert caught.value.why == "acc runs elementwise ops alone"
    assert "--fallback warn" in str(caught.value.do)


@pytest.mark.parametrize("fallback", ["warn", "allow"])
def test_the_host_runs_what_a_device_cannot(fallback: Fallback) -> None:
    """If it may, and the reason says which device could not."""
    found = place(product("acc"), DEVICES[:2], replace(RULES, fallback=fallback))
    verify_placed(found)
    (value,) = [node.results[0] for node in found.graph.nodes if node.op == "matmul"]
    assert found.device_of[value] == 0
    assert found.reasons[value] == PlaceReason("fallback", device="acc")


@pytest.mark.parametrize("mark", ["", AUTO])
def test_nobody_asked_for_the_device(mark: str) -> None:
    """A node that only follows, or is left to us, runs on the host without a question."""
    found = place(product(mark), DEVICES[:2], RULES)
    (value,) = [node.results[0] for node in found.graph.nodes if node.op == "matmul"]
    assert found.device_of[value] == 0
    assert found.reasons[value].kind == "host_only"


CHOICE = """graph(%0: f32[8], %1: bool[]) {
  %2 = if(%1) {symbols=[]} {()
    %2 = neg(%0) : f32[8] @[1]
    return %2
  } {()
    %2 = abs(%0) : f32[8] @[2]
    return %2
  } : f32[8] @[0] on "auto"
  %3 = exp(%2) : f32[8] @[3] on "auto"
  return %3
}
"""


@pytest.mark.parametrize("backend", BACKENDS[1:], ids=lambda backend: backend.kind)
def test_control_flow_is_left_to_no_kind_of_device(backend: Backend) -> None:
    """However cheap the device is and whatever its back end says: the host runs it, and the node
    behind it goes to the device."""
    module, _, name = backend.refuse_op.partition(":")
    refuse: RefuseOpFor = getattr(importlib.import_module(module), name)
    slow, fast = (
        DeviceCosts(1e3, 1e3, 1e3, 1e3, 0, 1.0),
        DeviceCosts(1e15, 1e15, 1e15, 1e15, 0, 0.0),
    )
    times = DeviceTimes(slow), DeviceTimes(fast)
    devices = DEVICES[0], DeclaredDevice("acc", VirtualDevice(backend.kind, 0))
    rules = PlacingRules((lambda node, graph: refuse(node, graph, ""),), times)
    found = place(OptimizedGraph(parse_graph(CHOICE)), devices, rules)
    where = {node.op: found.device_of[node.results[0]] for node in found.graph.nodes}
    assert (where["if"], where["exp"]) == (0, 1)


@pytest.mark.slow
def test_ten_thousand_nodes() -> None:
    """A network of that size is placed, better than on any one device."""
    auto = predicted([AUTO] * 10_000, 1, 3)
    assert all(auto < predicted([name] * 10_000, 1, 3) for name in NAMES)
