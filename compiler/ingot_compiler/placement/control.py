"""Nodes of a graph that is or will be placed: which are control flow, what is inside of them and
where that runs, which make values of nothing.

In: nodes, regions. Out: nodes inside, devices. Not done here: placing them (``place_region``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.graph import Graph, Node

HOST_OPS = ("read_dim", "require_dim")
"""Ops of sizes, which are the host's."""


def is_control(node: Node) -> bool:
    """Whether nodes run inside of it. A composite has a region too, which reads nothing outside and
    is one kernel."""
    return bool(node.regions) and node.op != "composite"


def is_made_of_nothing(node: Node) -> bool:
    """Whether a node reads no value, so that another device makes its results again instead of
    copying them."""
    return not node.operands and not node.regions


def devices_inside(region: Graph, around: Sequence[int], names: Sequence[str]) -> list[int]:
    """The device of each value that a region of a placed graph has or sees; ``around``: of those
    that it sees.

    Raises:
        ValueError: as ``device_inside``.
    """
    devices = [*around, *[0] * (len(region.types) - len(around))]
    for value in region.inputs:
        devices[value] = 0
    for node in region.nodes:
        for result in node.results:
            devices[result] = device_inside(node, names)
    return devices


def device_inside(node: Node, names: Sequence[str]) -> int:
    """The device of a node of a region that is placed: an index into ``names``.

    Raises:
        ValueError: no device has the name that it says.
    """
    return names.index(node.mark) if node.mark else 0


def placed_inside(graph: Graph) -> Iterator[Node]:
    """The nodes inside of control flow whose places have reasons, in the order of the graph: copies
    and what is made of nothing have none, before placement and behind it."""
    inside = (each for node in graph.nodes for each in nodes_inside(node))
    return (each for each in inside if each.operands and each.op != "copy")


def nodes_inside(node: Node) -> Iterator[Node]:
    """All nodes of the regions of a node, in their order, each before those inside of it."""
    for region in node.regions if is_control(node) else ():
        for inner in region.nodes:
            yield inner
            yield from nodes_inside(inner)
