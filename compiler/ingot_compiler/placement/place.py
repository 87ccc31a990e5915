"""Placement: every value gets a virtual device, every crossing becomes a visible ``copy`` node.

In: an optimized graph and the declared devices. Out: ``PlacedGraph``. Not done here: layouts and
fusion (``fuse``), binding to physical devices (the loader), the choice of a device for cost (marks
decide).

A node runs where it is marked. An unmarked node runs where its first operand lives that is no
constant, a constant where it is read first, anything else on the host. Inputs and outputs of the
graph live on the host.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.graph import Graph, Node, OptimizedGraph, captured, make_attributes
from ingot_compiler.ir.message import OptionRef, Text, message, nodes_text
from ingot_compiler.ir.renumber import first_free_id, renumber, with_operands
from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.configuration import HOST, Configuration
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.virtual_device import DeclaredDevice


@dataclass(frozen=True, slots=True)
class _Place:
    """A device's index and the reason in words."""

    device: int
    reason: str


def place(optimized: OptimizedGraph, devices: Sequence[DeclaredDevice]) -> PlacedGraph:
    """Give every value a device and insert a copy once per value and device that needs it.

    Raises:
        UserError: a mark names no declared device, a name is declared twice, or the host is
            missing.
        UnsupportedError: control flow on a device other than the host.
    """
    table = Configuration(tuple(devices)).devices
    graph = optimized.graph
    names = [device.name for device in table]
    _check_marks(graph, names)
    return _Placement(graph, table, names).run()


def _check_marks(graph: Graph, names: Sequence[str]) -> None:
    for node in graph.nodes:
        if node.mark and node.mark not in names:
            close = difflib.get_close_matches(node.mark, names, n=1)
            declare = message("declare it: ", OptionRef("device", f"{node.mark}=KIND"))
            raise UserError(
                f"no device named {node.mark!r}",
                where=_nodes(node),
                why=f"expected one of {', '.join(names)}",
                do=f"did you mean {close[0]!r}?" if close else declare,
            )
        for region in node.regions:
            _check_marks(region, names)


def _nodes(node: Node) -> Text:
    return (
        nodes_text(node.source) if node.source else f"a {node.op} that no imported node asked for"
    )


class _Placement:
    """The graph being rebuilt with copies; one use. Copies get ids above all others until the
    end."""

    def __init__(
        self, graph: Graph, devices: tuple[DeclaredDevice, ...], names: Sequence[str]
    ) -> None:
        self.graph = graph
        self.devices = devices
        self.names = names
        self.nodes: list[Node] = []
        free = first_free_id(graph)
        self.types = [*graph.types, *[TensorType("bool", ())] * (free - len(graph.types))]
        self.place_of: dict[int, _Place] = dict.fromkeys(
            graph.inputs, _Place(0, "input of the graph")
        )
        self.copies: dict[tuple[int, int], int] = {}
        self.makers = {result: node for node in graph.nodes for result in node.results}

    def run(self) -> PlacedGraph:
        """Decide, then rebuild with copies."""
        for node in self.graph.nodes:
            self._decide(node)
        self._decide_constants()
        for node in self.graph.nodes:
            self._add(node)
        reason = "output of the graph"
        outputs = tuple(self._on(value, 0, (), reason) for value in self.graph.outputs)
        rebuilt = Graph(self.graph.inputs, tuple(self.nodes), outputs, tuple(self.types))
        graph, renamed = renumber(rebuilt)
        places = [self.place_of[old] for old in renamed]
        indices = tuple(place.device for place in places)
        return PlacedGraph(graph, self.devices, indices, tuple(place.reason for place in places))

    def _decide(self, node: Node) -> None:
        """Place a node by its mark or operands; what is computed from constants alone stays
        open."""
        placed = [operand for operand in node.operands if operand in self.place_of]
        if node.mark:
            self._refuse_regions(node)
            place = _Place(self.names.index(node.mark), f"marked {node.mark}")
        elif node.regions or node.op == "read_dim":
            place = _Place(0, "control runs on the host")
        elif placed:
            maker = self.makers.get(placed[0])
            made_by = maker.op if maker else "the caller"
            place = _Place(
                self.place_of[placed[0]].device, f"follows its operand, made by {made_by}"
            )
        else:
            return
        self.place_of.update(dict.fromkeys(node.results, place))

    def _refuse_regions(self, node: Node) -> None:
        if node.regions and node.mark != HOST:
            raise UnsupportedError(
                f"{node.op} on device {node.mark}",
                where=_nodes(node),
                why="control flow runs on the host, with all that is in its branches",
                do=message(
                    "leave it there: ",
                    OptionRef("place", "ITS NAME=host"),
                    ", behind what matches it now",
                ),
            )

    def _decide_constants(self) -> None:
        """Constants live where they are read first; readers come later in the graph and are
        known."""
        users = self.graph.users()
        for node in reversed(self.graph.nodes):
            if not node.results or node.results[0] in self.place_of:
                continue
            readers = [index for result in node.results for index in users.get(result, ())]
            place = _Place(0, "constant that is returned")
            if readers:
                device = self._device_of(self.graph.nodes[readers[0]])
                place = _Place(device, "constant, lives where it is read first")
            self.place_of.update(dict.fromkeys(node.results, place))

    def _device_of(self, node: Node) -> int:
        return self.place_of[node.results[0]].device if node.results else 0

    def _add(self, node: Node) -> None:
        device = self._device_of(node)
        read = sorted({*node.operands, *captured(node)})
        replaced = {
            value: self._on(value, device, node.source, f"{node.op} reads it") for value in read
        }
        self.nodes.append(with_operands(node, replaced))

    def _on(self, value: int, device: int, source: tuple[int, ...], reason: str) -> int:
        """The value on ``device``: itself, or what stands for it there."""
        if self.place_of[value].device == device:
            return value
        if (value, device) not in self.copies:
            self.copies[value, device] = self._add_copy(value, device, source, reason)
        return self.copies[value, device]

    def _add_copy(self, value: int, device: int, source: tuple[int, ...], reason: str) -> int:
        """One copy, however many read it; what is made of nothing (a constant, a literal) is made
        there again."""
        copied = len(self.types)
        self.types.append(self.types[value])
        maker = self.makers.get(value)
        if maker is not None and not maker.operands and not maker.regions:
            self.place_of[copied] = _Place(device, f"made here too because {reason}")
            self.nodes.append(replace(maker, results=(copied,)))
        else:
            self.place_of[copied] = _Place(device, f"copied because {reason}")
            attributes = make_attributes({"destination": self.devices[device].name})
            self.nodes.append(Node("copy", (value,), (copied,), attributes, (), source))
        return copied
