"""A graph with regions as one list of nodes: every value gets an id of its own, so that fusion has
one table of values.

In: a graph with places, what each device expands. Out: a graph whose ops of control flow have no
regions, each followed by the nodes of its regions, and where these lie; ops that a device expands
are those that they become. Not done here: what runs when (``fusion.control``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.legalise import Expansion, expand
from ingot_compiler.placement.control import device_inside
from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FlatRegion:
    """Nodes ``first`` to ``last`` (exclusive) of the flat graph; ``inputs`` and ``outputs`` are
    flat value ids."""

    inputs: tuple[int, ...]
    first: int
    last: int
    outputs: tuple[int, ...]


@dataclass(slots=True)
class FlatGraph:
    """``regions``: index of a node of control flow -> its regions, which follow it; ``device_of``:
    of each value."""

    graph: Graph
    device_of: tuple[int, ...]
    regions: dict[int, tuple[FlatRegion, ...]] = field(
        default_factory=dict[int, tuple[FlatRegion, ...]]
    )

    def end(self, index: int) -> int:
        """The index behind a node and its regions."""
        return self.regions[index][-1].last if index in self.regions else index + 1


def flatten(placed: PlacedGraph, expansions: Sequence[Mapping[str, Expansion]]) -> FlatGraph:
    """Return the placed graph without regions; values of the outermost graph keep their ids.

    ``expansions``: per device, the host's first.
    """
    graph = placed.graph
    names = [device.name for device in placed.devices]
    flat = _Flattening(list(graph.types), list(placed.device_of), expansions, names)
    for node in graph.nodes:
        flat.add(node, {})
    nodes = tuple(flat.nodes)
    return FlatGraph(
        Graph(graph.inputs, nodes, graph.outputs, tuple(flat.types)),
        tuple(flat.device_of),
        flat.regions,
    )


@dataclass(slots=True)
class _Flattening:
    types: list[TensorType]
    device_of: list[int]
    expansions: Sequence[Mapping[str, Expansion]]
    names: Sequence[str]
    nodes: list[Node] = field(default_factory=list[Node])
    regions: dict[int, tuple[FlatRegion, ...]] = field(
        default_factory=dict[int, tuple[FlatRegion, ...]]
    )

    def add(self, node: Node, names: Mapping[int, int]) -> None:
        """Append a node; ``names``: id in its region -> flat id."""
        index = len(self.nodes)
        operands = tuple(names.get(operand, operand) for operand in node.operands)
        results = tuple(names.get(result, result) for result in node.results)
        device = self.device_of[results[0]] if results else 0
        kept = (
            node.regions if node.op == "composite" or not node.regions else ()
        )  # it reads nothing outside
        same = not names and kept is node.regions  # nearly all nodes
        flat = node if same else replace(node, operands=operands, results=results, regions=kept)
        rule = self.expansions[device].get(node.op)
        if rule is None:
            self.nodes.append(flat)
        else:
            self._expand(flat, device, rule)
        if node.regions and not kept:
            self.regions[index] = tuple(self._region(region, names) for region in node.regions)

    def _expand(self, node: Node, device: int, rule: Expansion) -> None:
        given, made = (
            [self.types[value] for value in values] for values in (node.operands, node.results)
        )
        expanded = expand(node, given, made, rule)
        ids = dict(enumerate(node.operands)) | dict(
            zip(expanded.results, node.results, strict=True)
        )
        for part in expanded.nodes:
            for result in part.results:
                if result not in ids:
                    ids[result] = self._new_value(expanded.types[result], device)
            operands, results = (
                tuple(ids[value] for value in values) for values in (part.operands, part.results)
            )
            self.nodes.append(
                replace(
                    part, operands=operands, results=results, source=node.source, mark=node.mark
                )
            )

    def _new_value(self, tensor_type: TensorType, device: int) -> int:
        self.types.append(tensor_type)
        self.device_of.append(device)
        return len(self.types) - 1

    def _region(self, region: Graph, outside: Mapping[int, int]) -> FlatRegion:
        own = dict.fromkeys(region.inputs, 0)
        for node in region.nodes:
            own.update(dict.fromkeys(node.results, device_inside(node, self.names)))
        names = dict(outside)
        for value, device in own.items():
            names[value] = self._new_value(region.types[value], device)
        first = len(self.nodes)
        for node in region.nodes:
            self.add(node, names)
        outputs = tuple(names.get(value, value) for value in region.outputs)
        return FlatRegion(
            tuple(names[value] for value in region.inputs), first, len(self.nodes), outputs
        )
