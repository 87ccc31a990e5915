"""Checks that a placed graph is well formed: what fusion may rely on.

In: a ``PlacedGraph``. Out: nothing, or ``InternalError`` that names the node. Not done here:
whether the graph means anything on its own (``ir.verify``, which is run, too).

The host comes first in the table, and names differ; each value has one device; a node reads values
of its own device alone, but for ``copy``, which joins two; a value is copied to a device once;
inputs, outputs and control are the host's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.graph import Graph, Node, captured
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.verify import find_problems
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.virtual_device import HOST_TYPE

HOST = "host"
DEVICE, VALUE = -2, -1
"""First part of the path of a device and of a value; that of a node is its index."""
CONTROL = ("read_dim", "require_dim")


def verify_placed(placed: PlacedGraph) -> None:
    """Raise InternalError for the first problem."""
    require_none(find_placed_problems(placed), "node", "placed graph", "placed")


def find_placed_problems(placed: PlacedGraph) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    yield from find_problems(placed.graph)
    yield from _devices(placed)
    count = len(placed.graph.types)
    if len(placed.device_of) != count or len(placed.reasons) != count:
        got = f"{len(placed.device_of)} devices, {len(placed.reasons)} reasons"
        yield Problem(
            (), "graph", f"{count} of both", got, "each value has one device and a reason"
        )
        return
    for value, device in enumerate(placed.device_of):
        if not 0 <= device < len(placed.devices):
            yield Problem(
                (VALUE, value),
                f"%{value}",
                f"0 to {len(placed.devices) - 1}",
                str(device),
                "devices of values",
            )
            return
    for value in placed.graph.inputs:
        yield from _on_host(placed, (VALUE, value), value, "inputs of the graph")
    copied: set[tuple[int, int]] = set()
    for index, node in enumerate(placed.graph.nodes):
        yield from _node(placed, index, node, copied)
    for value in placed.graph.outputs:
        yield from _on_host(placed, (VALUE, value), value, "outputs of the graph")


def _devices(placed: PlacedGraph) -> Iterator[Problem]:
    names = [item.name for item in placed.devices]
    first = placed.devices[0] if placed.devices else None
    if first is None or first.name != HOST or first.device.device_type != HOST_TYPE:
        got = f"{first.name!r} of type {first.device.device_type!r}" if first else "none"
        yield Problem(
            (DEVICE, 0), "device 0", f"{HOST!r} of type {HOST_TYPE!r}", got, "the first device"
        )
    for index, name in enumerate(names):
        if name in names[:index] or not name:
            yield Problem(
                (DEVICE, index), f"device {index}", "another name", repr(name), "names of devices"
            )


def _on_host(placed: PlacedGraph, path: Path, value: int, rule: str) -> Iterator[Problem]:
    if device := placed.device_of[value]:
        yield Problem(path, f"%{value}", "the host", _name(placed, device), rule)


def _node(
    placed: PlacedGraph, index: int, node: Node, copied: set[tuple[int, int]]
) -> Iterator[Problem]:
    path = (index,)
    devices = {
        placed.device_of[result] for result in node.results if result < len(placed.device_of)
    }
    device = min(devices, default=0)
    if len(devices) > 1:
        got = " and ".join(_name(placed, each) for each in sorted(devices))
        yield Problem(path, node.op, "one device", got, "results of a node")
    if (node.regions or node.op in CONTROL) and device:
        yield Problem(path, node.op, "the host", _name(placed, device), "control runs on the host")
    # What is made of nothing is made again wherever it is read; sizes are the host's, whatever
    # their op is marked.
    if (
        node.mark
        and node.operands
        and node.op not in ("copy", *CONTROL)
        and node.mark != placed.devices[device].name
    ):
        yield Problem(
            path,
            node.op,
            f"device {node.mark!r}",
            _name(placed, device),
            "a node runs where it is marked",
        )
    if node.op == "copy":
        yield from _copy(placed, path, node, device, copied)
        return
    for operand in sorted({*node.operands, *captured(node)}):
        if operand < len(placed.device_of) and placed.device_of[operand] != device:
            got = f"%{operand} on {_name(placed, placed.device_of[operand])}"
            yield Problem(
                path, node.op, f"values of {_name(placed, device)}", got, "each crossing is a copy"
            )
    for number, region in enumerate(node.regions):
        yield from _no_copies(region, (*path, number))


def _copy(
    placed: PlacedGraph, path: Path, node: Node, device: int, copied: set[tuple[int, int]]
) -> Iterator[Problem]:
    if len(node.operands) != 1 or node.operands[0] >= len(placed.device_of):
        return  # told of the graph
    (operand,) = node.operands
    if dict(node.attributes).get("destination") != placed.devices[device].name:
        got = str(dict(node.attributes).get("destination"))
        yield Problem(
            path,
            node.op,
            f"destination {placed.devices[device].name!r}",
            repr(got),
            "a copy goes to its device",
        )
    if placed.device_of[operand] == device:
        yield Problem(
            path,
            node.op,
            f"a value of another device than {_name(placed, device)}",
            f"%{operand}",
            "a copy joins two",
        )
    if (operand, device) in copied:
        got = f"%{operand} to {_name(placed, device)} again"
        yield Problem(
            path, node.op, "one copy of a value to a device", got, "a value is copied once"
        )
    copied.add((operand, device))


def _no_copies(region: Graph, path: Path) -> Iterator[Problem]:
    for index, node in enumerate(region.nodes):
        if node.op == "copy":
            yield Problem((*path, index), node.op, "no copy", "one", "control runs on the host")
        for number, inner in enumerate(node.regions):
            yield from _no_copies(inner, (*path, index, number))


def _name(placed: PlacedGraph, device: int) -> str:
    return f"device {placed.devices[device].name!r}"
