"""Virtual devices (seed sections 1.2 to 1.9, rows 1-9) and the placement of graphs."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import OptimizedGraph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.place import place
from ingot_compiler.placement.place_reason import PlaceReason
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.virtual_device import (
    UNCONSTRAINED,
    DeclaredDevice,
    VirtualDevice,
    default,
    join,
    of_target,
)

ONE, TWO = "cuda:sm_80", "cuda:sm_90"
HOST = DeclaredDevice("host", of_target("x86-64-v3"))
ACC = DeclaredDevice("acc", VirtualDevice("opencl", 0, "opencl"))


def cuda(identity: int = -1, target: str = "", scope: str = "") -> VirtualDevice:
    """A CUDA device with some fields open."""
    return VirtualDevice("cuda", identity, target, scope)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (cuda(3), cuda(-1, ONE, "global"), cuda(3, ONE, "global")),
        (cuda(-1, ONE, "global"), cuda(3), cuda(3, ONE, "global")),
        (cuda(), cuda(2, ONE), cuda(2, ONE)),
        (UNCONSTRAINED, cuda(3, ONE, "global"), cuda(3, ONE, "global")),
        (cuda(), VirtualDevice("cpu"), None),
        (cuda(3), cuda(4), None),
        (cuda(3, ONE), cuda(3, TWO), None),
        (cuda(3, ONE, "local"), cuda(3, TWO, "global"), None),
        (cuda(3, ONE), cuda(3, "cuda:sm_80"), cuda(3, ONE)),  # targets are values: equal ones join
    ],
)
def test_join(left: VirtualDevice, right: VirtualDevice, expected: VirtualDevice | None) -> None:
    """The reference cases of seed 1.4, with targets as values."""
    assert join(left, right) == expected


def test_default() -> None:
    """The reference case of seed 1.5, and no field of a device of another type."""
    assert default(cuda(-1, "", "global"), cuda(3, ONE, "local")) == cuda(3, ONE, "global")
    assert default(VirtualDevice("cpu"), cuda(0, ONE, "local")) == VirtualDevice("cpu")
    assert default(UNCONSTRAINED, cuda(0, ONE)) == cuda(0, ONE)


DEVICES = [
    UNCONSTRAINED,
    *(
        VirtualDevice(kind, identity, target, scope)
        for kind, targets in (("", ("",)), ("host", ("", "x86-64-v3")), ("cuda", ("", ONE, TWO)))
        for identity, target, scope in itertools.product((-1, 0, 1), targets, ("", "global"))
    ),
]
devices = st.sampled_from(DEVICES)


@given(devices, devices, devices)
def test_join_is_a_partial_semilattice(
    one: VirtualDevice, two: VirtualDevice, three: VirtualDevice
) -> None:
    """Commutative, idempotent, with a unit, associative where defined."""
    assert join(one, two) == join(two, one)
    assert join(one, one) == one
    assert join(one, UNCONSTRAINED) == one
    left, right = join(one, two), join(two, three)
    if left is not None and right is not None:
        assert join(left, three) == join(one, right)


@given(devices, devices)
def test_default_is_total_and_left_biased(one: VirtualDevice, two: VirtualDevice) -> None:
    """Decided fields of the left stay; applying it twice changes nothing; it agrees with join where
    that is defined."""
    found = default(one, two)
    assert join(one, found) == found
    assert default(found, two) == found
    assert default(one, UNCONSTRAINED) == one


def test_construction_rules() -> None:
    """A target of another device type is refused by name, also with an open type; ids below -1 are
    refused."""
    with pytest.raises(UserError, match="cuda:sm_80 is for cuda devices"):
        VirtualDevice("cpu", 0, ONE)
    with pytest.raises(UserError, match="cuda devices"):
        VirtualDevice("", 0, ONE)
    with pytest.raises(UserError, match="bad device id"):
        VirtualDevice("cpu", -2)
    assert of_target(ONE) == cuda(0, ONE)
    assert VirtualDevice(memory_scope="global").is_open is False
    assert VirtualDevice().is_open
    assert cuda(0, ONE, "global").is_decided
    assert not cuda(0, ONE).is_decided


def test_text_form() -> None:
    """Only decided fields, in a fixed order; ``?`` for none."""
    assert str(UNCONSTRAINED) == "VirtualDevice(?)"
    assert str(cuda(3, ONE, "global")) == (
        "VirtualDevice(device_type=cuda, virtual_device_id=3, target=cuda:sm_80, memory_scope='global')"
    )
    assert str(VirtualDevice("cpu")) == "VirtualDevice(device_type=cpu)"


def test_equality_and_hash_are_structural() -> None:
    """Equal fields are equal values; a changed field is another value."""
    assert (
        len({cuda(1, ONE), cuda(1, "cuda:sm_80"), cuda(1, TWO), replace(cuda(1, ONE), id=2)}) == 3
    )


def marked(*marks: str) -> OptimizedGraph:
    """x -> exp -> add w -> relu -> output, the three nodes with these marks."""
    builder = GraphBuilder([TensorType("f32", (4,))])
    weights = builder.add("constant", (), {"weight": "w", "dtype": "f32", "shape": (4,)})
    value = builder.add("exp", (0,), {}, (0,), marks[0])
    value = builder.add("add", (value, weights), {}, (1,), marks[1])
    return OptimizedGraph(builder.finish((builder.add("relu", (value,), {}, (2,), marks[2]),)))


def places(placed: PlacedGraph) -> list[tuple[str, str]]:
    """(op, device) of every node."""
    return [
        (node.op, placed.devices[placed.device_of[node.results[0]]].name)
        for node in placed.graph.nodes
    ]


@pytest.mark.parametrize("mark", ["", "host"])
def test_one_device_needs_no_copies(mark: str) -> None:
    """Everything is on the host and the graph is unchanged."""
    optimized = marked(mark, "", "host")
    placed = place(optimized, (HOST,))
    assert placed.graph == optimized.graph
    assert placed.device_of == (0,) * len(placed.graph.types)
    assert placed.devices == (HOST,)
    assert all(placed.reasons)


def test_copies_are_explicit_and_shared() -> None:
    """Unmarked nodes follow their operand, constants live at their reader, outputs return to the
    host."""
    placed = place(marked("acc", "", "host"), (ACC, HOST))
    assert [device.name for device in placed.devices] == ["host", "acc"]
    assert places(placed) == [
        ("constant", "acc"), ("copy", "acc"), ("exp", "acc"), ("add", "acc"), ("copy", "host"), ("relu", "host")
    ]  # fmt: skip
    assert placed.reasons[-1] == PlaceReason("marked")
    builder = GraphBuilder([TensorType("f32", (4,))])
    both = [builder.add(op, (0,), {}, (), "acc") for op in ("exp", "neg")]
    twice = place(OptimizedGraph(builder.finish((*both, both[0]))), (HOST, ACC))
    assert [op for op, _ in places(twice)].count("copy") == 3


@given(st.lists(st.sampled_from(("", "host", "acc")), min_size=3, max_size=3))
def test_every_crossing_is_a_copy(marks: list[str]) -> None:
    """Only ``copy`` nodes read a value of another device, and their destination is where their
    result lives."""
    placed = place(marked(*marks), (HOST, ACC))
    for node in placed.graph.nodes:
        here = placed.device_of[node.results[0]]
        crosses = any(placed.device_of[operand] != here for operand in node.operands)
        assert crosses == (node.op == "copy")
        assert node.op != "copy" or node.text("destination") == placed.devices[here].name
    assert all(
        placed.device_of[value] == 0 for value in (*placed.graph.inputs, *placed.graph.outputs)
    )


def test_unknown_marks_are_refused_with_a_suggestion() -> None:
    """The error names the mark, the node and the nearest declared device."""
    with pytest.raises(UserError) as caught:
        place(marked("", "ac", ""), (HOST, ACC))
    assert "'ac'" in caught.value.what
    assert caught.value.where == "node #1"
    assert "'acc'" in caught.value.do


def test_the_device_table_is_checked() -> None:
    """The host is explicit, names are unique."""
    with pytest.raises(UserError, match="no host device"):
        place(marked("", "", ""), (ACC,))
    with pytest.raises(UserError, match="declared twice"):
        place(marked("", "", ""), (HOST, ACC, ACC))
