"""Checks that a placed graph is well formed: what fusion may rely on.

In: a ``PlacedGraph``. Out: nothing, or ``InternalError`` that names the node. Not done here:
whether the graph means anything on its own (``ir.verify``, which is run, too).

The host comes first in the table, and names differ; each value has one device; a node reads values
of its own device alone, but for ``copy``, which joins two; a value is copied to a device once;
inputs, outputs and control are the host's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.graph import AUTO, Graph, Node
from ingot_compiler.ir.problem import Part, Path, Problem, require_none
from ingot_compiler.ir.verify import find_problems
from ingot_compiler.placement.control import (
    HOST_OPS,
    device_inside,
    devices_inside,
    is_control,
    placed_inside,
)
from ingot_compiler.placement.place_reason import NO_VALUE, PlaceReason
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.virtual_device import HOST_TYPE

HOST = "host"
DEVICE, VALUE, INSIDE = -2, -1, -3
"""First part of the path of a device, of a value, of a reason inside; that of a node is its
index."""


def verify_placed(placed: PlacedGraph) -> None:
    """Raise InternalError for the first problem."""
    require_none(find_placed_problems(placed), "node", "placed graph", "placed")


def find_placed_problems(placed: PlacedGraph) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    yield from find_problems(placed.graph)
    yield from _devices(placed)
    problem = _values(placed)
    if problem is not None:
        yield problem
        return
    for value, reason in enumerate(placed.reasons):
        yield from _reason(placed, Part((VALUE, value), f"%{value}"), reason, value)
    yield from _inside(placed)
    for value in placed.graph.inputs:
        yield from _on_host(placed, value, "inputs of the graph")
    copied: set[tuple[int, int]] = set()
    for index, node in enumerate(placed.graph.nodes):
        yield from _node(placed, Part((index,), node.op), node, copied)
    for value in placed.graph.outputs:
        yield from _on_host(placed, value, "outputs of the graph")


def _values(placed: PlacedGraph) -> Problem | None:
    """Without a device of each value, nothing else can be checked."""
    count = len(placed.graph.types)
    if len(placed.device_of) != count or len(placed.reasons) != count:
        got = f"{len(placed.device_of)} devices, {len(placed.reasons)} reasons"
        rule = "each value has one device and a reason"
        return Problem((), "graph", f"{count} of both", got, rule)
    for value, device in enumerate(placed.device_of):
        if not 0 <= device < len(placed.devices):
            expected = f"0 to {len(placed.devices) - 1}"
            return Problem((VALUE, value), f"%{value}", expected, str(device), "devices of values")
    return None


def _inside(placed: PlacedGraph) -> Iterator[Problem]:
    """That each node inside of control flow has a reason."""
    count = sum(1 for _ in placed_inside(placed.graph))
    if len(placed.inside) != count:
        rule = "each node inside has a reason"
        yield Problem((), "graph", f"{count} reasons", str(len(placed.inside)), rule)
    for number, reason in enumerate(placed.inside):
        yield from _reason(placed, Part((INSIDE, number), f"inside {number}"), reason)


def _reason(
    placed: PlacedGraph, part: Part, reason: PlaceReason, value: int | None = None
) -> Iterator[Problem]:
    """That the chain of reasons can be followed; ``value``: whose reason it is."""
    if not NO_VALUE <= reason.value < len(placed.device_of) or reason.value == value:
        yield part.problem("another value", f"%{reason.value}", "a reason leads to a value")
    if reason.device and reason.device not in [item.name for item in placed.devices]:
        yield part.problem("a device", repr(reason.device), "a reason names a device")
    if reason.picoseconds and len(reason.picoseconds) != len(placed.devices):
        count = f"{len(placed.devices)} times"
        yield part.problem(count, str(len(reason.picoseconds)), "a reason compares all devices")


def _devices(placed: PlacedGraph) -> Iterator[Problem]:
    names = [item.name for item in placed.devices]
    first = placed.devices[0] if placed.devices else None
    if first is None or first.name != HOST or first.device.device_type != HOST_TYPE:
        expected = f"{HOST!r} of type {HOST_TYPE!r}"
        got = f"{first.name!r} of type {first.device.device_type!r}" if first else "none"
        yield Problem((DEVICE, 0), "device 0", expected, got, "the first device")
    for index, name in enumerate(names):
        if name in names[:index] or not name:
            part = Part((DEVICE, index), f"device {index}")
            yield part.problem("another name", repr(name), "names of devices")


def _on_host(placed: PlacedGraph, value: int, rule: str) -> Iterator[Problem]:
    if device := placed.device_of[value]:
        yield Problem((VALUE, value), f"%{value}", "the host", _name(placed, device), rule)


def _node(
    placed: PlacedGraph, part: Part, node: Node, copied: set[tuple[int, int]]
) -> Iterator[Problem]:
    yield from _runs(placed, part, node)
    if node.op == "copy":
        yield from _copy(placed, part, node, copied)
    else:
        yield from _reads(placed, part, node)


def _runs(placed: PlacedGraph, part: Part, node: Node) -> Iterator[Problem]:
    """That a node runs on one device, which may run it."""
    devices = _devices_of(placed, node)
    device = min(devices, default=0)
    if len(devices) > 1:
        got = " and ".join(_name(placed, each) for each in sorted(devices))
        yield part.problem("one device", got, "results of a node")
    if (node.regions or node.op in HOST_OPS) and device:
        yield part.problem("the host", _name(placed, device), "control runs on the host")
    # What is made of nothing is made again wherever it is read; sizes are the host's, whatever
    # their op is marked.
    runs_where_marked = node.mark and node.operands and node.op not in ("copy", *HOST_OPS)
    if runs_where_marked and not _may_run(placed, node, device):
        got = _name(placed, device)
        yield part.problem(f"device {node.mark!r}", got, "a node runs where it is marked")


def _may_run(placed: PlacedGraph, node: Node, device: int) -> bool:
    """Whether a marked node may be on a device: the host takes what the user lets it take."""
    if node.mark in (AUTO, placed.devices[device].name):
        return True
    reasons = {placed.reasons[result].kind for result in node.results}
    return device == 0 and reasons == {"fallback"}


def _devices_of(placed: PlacedGraph, node: Node) -> set[int]:
    """The devices of a node's results that are values of the graph."""
    return {placed.device_of[result] for result in node.results if result < len(placed.device_of)}


def _reads(placed: PlacedGraph, part: Part, node: Node) -> Iterator[Problem]:
    """That a node other than a copy reads values of its own device, and so do those inside."""
    device = min(_devices_of(placed, node), default=0)
    for operand in sorted(set(node.operands)):
        if operand < len(placed.device_of) and placed.device_of[operand] != device:
            got = f"%{operand} on {_name(placed, placed.device_of[operand])}"
            expected = f"values of {_name(placed, device)}"
            yield part.problem(expected, got, "each crossing is a copy")
    for number, region in enumerate(node.regions if is_control(node) else ()):
        yield from _region(placed, region, (*part.path, number), placed.device_of)


def _copy(
    placed: PlacedGraph, part: Part, node: Node, copied: set[tuple[int, int]]
) -> Iterator[Problem]:
    """That a copy joins two devices; ``copied``: (value, device) of those before."""
    if len(node.operands) != 1 or node.operands[0] >= len(placed.device_of):
        return  # told of the graph
    (operand,) = node.operands
    device = min(_devices_of(placed, node), default=0)
    here, destination = _name(placed, device), node.table.get("destination")
    if destination != placed.devices[device].name:
        expected = f"destination {placed.devices[device].name!r}"
        yield part.problem(expected, repr(str(destination)), "a copy goes to its device")
    if placed.device_of[operand] == device:
        yield part.problem(
            f"a value of another device than {here}", f"%{operand}", "a copy joins two"
        )
    if (operand, device) in copied:
        got = f"%{operand} to {here} again"
        yield part.problem("one copy of a value to a device", got, "a value is copied once")
    copied.add((operand, device))


def _region(
    placed: PlacedGraph, region: Graph, path: Path, around: Sequence[int]
) -> Iterator[Problem]:
    """That what is inside of control flow reads values of its own device, and is given and gives
    those of the host; ``around``: the devices of the values that it sees."""
    names = [item.name for item in placed.devices]
    unknown = [
        (index, node) for index, node in enumerate(region.nodes) if node.mark not in ("", *names)
    ]
    for index, node in unknown:
        part = Part((*path, index), node.op)
        yield part.problem("a device", repr(node.mark), "a node inside names its device")
    if unknown:
        return
    devices = devices_inside(region, around, names)
    for index, node in enumerate(region.nodes):
        part, device = Part((*path, index), node.op), device_inside(node, names)
        if (node.regions or node.op in HOST_OPS) and device:
            yield part.problem("the host", _name(placed, device), "control runs on the host")
        if node.op == "copy" and node.table.get("destination") != names[device]:
            got = repr(str(node.table.get("destination")))
            yield part.problem(f"destination {names[device]!r}", got, "a copy goes to its device")
        for operand in sorted(set(node.operands)):
            if (devices[operand] == device) is (node.op == "copy"):
                got = f"%{operand} on {_name(placed, devices[operand])}"
                rule = "each crossing is a copy"
                yield part.problem(f"values of {_name(placed, device)}", got, rule)
        for number, inner in enumerate(node.regions if is_control(node) else ()):
            yield from _region(placed, inner, (*part.path, number), devices)
    for value in region.outputs:
        if devices[value]:
            got = f"%{value} on {_name(placed, devices[value])}"
            yield Problem(path, "region", "values of the host", got, "outputs of a region")


def _name(placed: PlacedGraph, device: int) -> str:
    return f"device {placed.devices[device].name!r}"
