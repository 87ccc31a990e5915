"""Puts composites in the place of what was claimed.

In: a graph, sets of its nodes. Out: the graph with a composite for each set, or the order that
there is none. Not done here: which sets (``choose_claims``); value ids, which may have gaps behind
it (``renumber``).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Graph, Node, captured, make_attributes
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TakenClaim:
    """Nodes of a graph, ascending, that become a composite of a plug-in."""

    plugin: str
    name: str
    nodes: tuple[int, ...]


def run_order(
    before: Sequence[frozenset[int]], sets: Sequence[frozenset[int]]
) -> tuple[tuple[int, ...], ...] | None:
    """Units, each a set or a single node, in an order in which they can run; None where there is
    none. Single nodes stay in their order where they can."""
    unit_of = {index: nodes for nodes in sets for index in nodes}
    units = [*sets, *(frozenset((index,)) for index in range(len(before)) if index not in unit_of)]
    unit_of |= {index: unit for unit in units for index in unit}
    waits = {unit: {unit_of[each] for index in unit for each in before[index]} for unit in units}
    readers: dict[frozenset[int], list[frozenset[int]]] = {unit: [] for unit in units}
    for unit in units:
        waits[unit].discard(unit)
        for earlier in waits[unit]:
            readers[earlier].append(unit)
    ready = [(max(unit), unit) for unit in units if not waits[unit]]
    heapq.heapify(ready)
    order: list[tuple[int, ...]] = []
    while ready:
        _, unit = heapq.heappop(ready)
        order.append(tuple(sorted(unit)))
        for reader in readers[unit]:
            waits[reader].discard(unit)
            if not waits[reader]:
                heapq.heappush(ready, (max(reader), reader))
    return tuple(order) if len(order) == len(units) else None


def with_composites(
    graph: Graph, order: Sequence[tuple[int, ...]], wanted: Sequence[TakenClaim], first_id: int
) -> Graph:
    """The graph in an order of units, with a composite in the place of each claim; ids from
    ``first_id`` on are free."""
    taken = {claim.nodes: claim for claim in wanted}
    filler = [TensorType("bool", ())] * max(0, first_id - len(graph.types))
    making = _Making(graph, graph.users(), [*graph.types, *filler])
    nodes = tuple(
        making.composite(taken[unit]) if unit in taken else graph.nodes[unit[0]] for unit in order
    )
    return replace(graph, nodes=nodes, types=tuple(making.types))


@dataclass(frozen=True, slots=True)
class _Making:
    """``types``: of the graph's values, and of those inside composites."""

    graph: Graph
    users: Mapping[int, Sequence[int]]
    types: list[TensorType]

    def composite(self, claim: TakenClaim) -> Node:
        """The node that stands for a claim."""
        members = [self.graph.nodes[index] for index in claim.nodes]
        inner = [*self._literals(members), *members]
        made = {result for node in inner for result in node.results}
        read = [value for node in members for value in node.operands if value not in made]
        operands = tuple(dict.fromkeys(read))
        results = tuple(
            result for node in members for result in node.results if self._is_seen(result, claim)
        )
        ids = {value: self._new(value) for value in (*operands, *sorted(made))}
        nodes = tuple(_renamed(node, ids) for node in inner)
        inputs, outputs = (tuple(map(ids.__getitem__, values)) for values in (operands, results))
        body = Graph(inputs, nodes, outputs, tuple(self.types))
        attributes = make_attributes({"name": claim.name, "plugin": claim.plugin})
        source = tuple(sorted({ordinal for node in members for ordinal in node.source}))
        return Node("composite", operands, results, attributes, (body,), source)

    def _literals(self, members: Sequence[Node]) -> list[Node]:
        """The literals that they read, each once: numbers are part of what is computed."""
        read = {value for node in members for value in node.operands}
        return [
            node for node in self.graph.nodes if node.op == "literal" and read & set(node.results)
        ]

    def _is_seen(self, value: int, claim: TakenClaim) -> bool:
        """Whether something beside the claim reads a value of it."""
        outside = set(self.users.get(value, ())) - set(claim.nodes)
        return value in self.graph.outputs or bool(outside)

    def _new(self, value: int) -> int:
        self.types.append(self.types[value])
        return len(self.types) - 1


def _renamed(node: Node, ids: Mapping[int, int]) -> Node:
    assert not captured(node)
    operands = tuple(ids[operand] for operand in node.operands)
    results = tuple(ids[result] for result in node.results)
    return replace(node, operands=operands, results=results, mark="")
