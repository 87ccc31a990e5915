"""A graph with regions as one list of nodes: every value gets an id of its own, so that fusion has one table of values.

In: a graph. Out: a graph whose ops of control flow have no regions, each followed by the nodes of its regions, and where these
lie. Not done here: what runs when (``fusion.control``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class FlatRegion:
    """Nodes ``first`` to ``last`` (exclusive) of the flat graph; ``inputs`` and ``outputs`` are flat value ids."""

    inputs: tuple[int, ...]
    first: int
    last: int
    outputs: tuple[int, ...]


@dataclass(slots=True)
class FlatGraph:
    """``regions``: index of a node of control flow -> its regions, which follow it."""

    graph: Graph
    regions: dict[int, tuple[FlatRegion, ...]] = field(default_factory=dict[int, tuple[FlatRegion, ...]])

    def end(self, index: int) -> int:
        """The index behind a node and its regions."""
        return self.regions[index][-1].last if index in self.regions else index + 1


def flatten(graph: Graph) -> FlatGraph:
    """The same graph, flat; values of the outermost graph keep their ids."""
    flat = _Flattening(list(graph.types))
    for node in graph.nodes:
        flat.add(node, {})
    nodes = tuple(flat.nodes)
    return FlatGraph(Graph(graph.inputs, nodes, graph.outputs, tuple(flat.types)), flat.regions)


@dataclass(slots=True)
class _Flattening:
    types: list[TensorType]
    nodes: list[Node] = field(default_factory=list[Node])
    regions: dict[int, tuple[FlatRegion, ...]] = field(default_factory=dict[int, tuple[FlatRegion, ...]])

    def add(self, node: Node, names: Mapping[int, int]) -> None:
        """Append a node; ``names``: id in its region -> flat id."""
        index = len(self.nodes)
        operands = tuple(names.get(operand, operand) for operand in node.operands)
        results = tuple(names.get(result, result) for result in node.results)
        self.nodes.append(replace(node, operands=operands, results=results, regions=()))
        if node.regions:
            self.regions[index] = tuple(self._region(region, names) for region in node.regions)

    def _region(self, region: Graph, outside: Mapping[int, int]) -> FlatRegion:
        own = [*region.inputs, *(result for node in region.nodes for result in node.results)]
        names = {**outside, **{value: len(self.types) + at for at, value in enumerate(own)}}
        self.types += [region.types[value] for value in own]
        first = len(self.nodes)
        for node in region.nodes:
            self.add(node, names)
        outputs = tuple(names.get(value, value) for value in region.outputs)
        return FlatRegion(tuple(names[value] for value in region.inputs), first, len(self.nodes), outputs)
