"""What was decided for nodes inside of control flow: their marks, as if by hand, and why.

In: a graph, what ``auto`` chose by the paths of nodes, which of them devices run. Out: the graph,
whose inner nodes are marked; reasons. Not done here: choosing (``choose_devices``), copies
(``place_region``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import AUTO, Graph, Node
from ingot_compiler.placement.choose_devices import DeviceChoice
from ingot_compiler.placement.control import HOST_OPS, is_control
from ingot_compiler.placement.place_reason import CANNOT_RUN, PlaceReason
from ingot_compiler.placement.placing_rules import PlacingRules
from ingot_compiler.placement.placing_units import Path
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ChoicesInside:
    """``names`` of all devices, the host first; ``choices``: of nodes that were left to us."""

    names: Sequence[str]
    rules: PlacingRules
    choices: Mapping[Path, DeviceChoice]

    def marked(self, graph: Graph, path: Path = ()) -> Graph:
        """The graph with the name of its device as the mark of each inner node that was left to
        us."""
        if all(len(each) == 1 for each in self.choices):
            return graph
        nodes = (self._marked(node, (*path, at)) for at, node in enumerate(graph.nodes))
        return replace(graph, nodes=tuple(nodes))

    def _marked(self, node: Node, path: Path) -> Node:
        if is_control(node):
            regions = (
                self.marked(region, (*path, number)) for number, region in enumerate(node.regions)
            )
            return replace(node, regions=tuple(regions))
        choice = self.choices.get(path) if len(path) > 1 else None
        return node if choice is None else replace(node, mark=self.names[choice.device])

    def reasons(self, graph: Graph, path: Path = ()) -> Iterator[PlaceReason]:
        """Why each inner node is where it is, in the order of ``placed_inside``."""
        for index, node in enumerate(graph.nodes):
            here = (*path, index)
            if path and node.operands:
                yield self._reason(node, graph, here)
            for number, region in enumerate(node.regions if is_control(node) else ()):
                yield from self.reasons(region, (*here, number))

    def _reason(self, node: Node, graph: Graph, path: Path) -> PlaceReason:
        if node.op in HOST_OPS or (is_control(node) and node.mark in ("", AUTO)):
            return PlaceReason("host_only")
        if node.mark == AUTO:
            return self._auto(node, graph, path)
        if not node.mark:
            return PlaceReason("default")
        is_refused = self.rules.refusal(node, graph, self.names.index(node.mark))
        return PlaceReason("fallback", device=node.mark) if is_refused else PlaceReason("marked")

    def _auto(self, node: Node, graph: Graph, path: Path) -> PlaceReason:
        """What was compared; nothing is where only the host runs it, or it is made of constants."""
        choice = self.choices.get(path)
        if choice is not None:
            return auto_reason(choice)
        others = range(1, len(self.names))
        is_refused = all(self.rules.refusal(node, graph, device) for device in others)
        return PlaceReason("host_only" if others and is_refused else "default")


def auto_reason(choice: DeviceChoice) -> PlaceReason:
    """Why a node that was left to us is where it is."""
    costs = (CANNOT_RUN if each is None else each for each in choice.picoseconds)
    return PlaceReason("auto", picoseconds=tuple(costs))
