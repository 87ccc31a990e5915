"""Drops what nobody needs from a graph, and gives the values that are left dense ids.

In: a graph whose ids may have gaps. Out: a graph that ``verify`` accepts. Not done here: which
nodes are replaced (the passes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ingot_compiler.ir.graph import Graph, Node, captured
from ingot_compiler.ir.rules.region_rules import bound_symbols
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.used_symbols import attribute_symbols, graph_symbols, type_symbols

_CACHED_MAX = 1 << 12


def compact(graph: Graph) -> Graph:
    """Drop nodes whose results nobody needs and make value ids dense; inputs stay."""
    return renumber(graph)[0]


def renumber(graph: Graph) -> tuple[Graph, dict[int, int]]:
    """``compact``, and the new id of every value that is left."""
    live = _live_nodes(graph)
    old_ids = [*graph.inputs, *[result for node in live for result in node.results]]
    is_dense = len(live) == len(graph.nodes) and old_ids == list(range(len(graph.types)))
    if is_dense and not any(node.regions for node in live):  # as most passes leave it
        return graph, dict(zip(old_ids, old_ids, strict=True))
    renamed = {old: index for index, old in enumerate(old_ids)}
    types = [graph.types[old] for old in old_ids]
    nodes = tuple([_renumbered(node, renamed, types) for node in live])
    outputs = tuple(renamed[value] for value in graph.outputs)
    return Graph(tuple(range(len(graph.inputs))), nodes, outputs, tuple(types)), renamed


def first_free_id(graph: Graph) -> int:
    """One more than the largest id in the graph and its regions."""
    return max(
        [
            len(graph.types),
            *(first_free_id(region) for node in graph.nodes for region in node.regions),
        ]
    )


def with_operands(node: Node, replaced: Mapping[int, int]) -> Node:
    """The node reading other values, its regions included; the same object where it reads none of
    them."""
    if not node.regions and replaced.keys().isdisjoint(node.operands):
        return node
    operands = tuple([replaced.get(item, item) for item in node.operands])
    regions = tuple(_map_region(region, replaced) for region in node.regions)
    return _with(node, operands, node.results, regions)


def _map_region(region: Graph, replaced: Mapping[int, int]) -> Graph:
    """Let a region read the values that stand for the ones it captured."""
    nodes = tuple(with_operands(node, replaced) for node in region.nodes)
    return replace(
        region, nodes=nodes, outputs=tuple(replaced.get(item, item) for item in region.outputs)
    )


def _live_nodes(graph: Graph) -> list[Node]:
    """Nodes that the outputs need, and every ``require_dim``; ``read_dim`` is needed by those who
    use the symbol it binds."""
    if not any(map(bound_symbols, graph.nodes)):  # most graphs
        return _nodes_read(graph)
    needed = set(graph.outputs)
    symbols = {name for value in graph.outputs for name in type_symbols(graph.types[value])}
    live: list[Node] = []
    for node in reversed(graph.nodes):
        is_read = node.op == "require_dim" or not needed.isdisjoint(node.results)
        if not is_read and symbols.isdisjoint(bound_symbols(node)):
            continue
        live.append(node)
        needed.update(node.operands)
        symbols.update(attribute_symbols(node.attributes))
        if node.regions:
            needed.update(captured(node))
            symbols.update(name for region in node.regions for name in graph_symbols(region))
        for value in node.results:
            symbols.update(_symbols_of(graph.types[value]))
    return live[::-1]


def _nodes_read(graph: Graph) -> list[Node]:
    """Nodes whose results are needed, and every ``require_dim``, where none binds a symbol."""
    needed = set(graph.outputs)
    live: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.results) or node.op == "require_dim":
            live.append(node)
            needed.update(node.operands)
            if node.regions:
                needed.update(captured(node))
    return live[::-1]


@lru_cache(maxsize=_CACHED_MAX)  # a graph has many values of few types
def _symbols_of(tensor: TensorType) -> frozenset[str]:
    return frozenset(type_symbols(tensor))


def _renumbered(node: Node, renamed: Mapping[int, int], types: Sequence[TensorType]) -> Node:
    operands = tuple([renamed[value] for value in node.operands])
    results = tuple([renamed[value] for value in node.results])
    if not node.regions:  # nearly all nodes
        same = operands == node.operands and results == node.results
        return node if same else _with(node, operands, results, ())
    regions = tuple(
        _renumbered_region(region, renamed, types[: renamed[node.results[0]]])
        for region in node.regions
    )
    return _with(node, operands, results, regions)


def _with(
    node: Node, operands: tuple[int, ...], results: tuple[int, ...], regions: tuple[Graph, ...]
) -> Node:
    """Return a copy of ``node`` with other fields; ``dataclasses.replace`` takes five times as
    long, and passes do little else."""
    return Node(node.op, operands, results, node.attributes, regions, node.source, node.mark)


def _renumbered_region(
    region: Graph, renamed: Mapping[int, int], visible: Sequence[TensorType]
) -> Graph:
    """A region's own ids continue after those of the values it can see, whose types it repeats."""
    own = [*region.inputs, *(result for node in region.nodes for result in node.results)]
    table = dict(renamed) | {value: len(visible) + index for index, value in enumerate(own)}
    types = [*visible, *(region.types[value] for value in own)]
    nodes = tuple(_renumbered(node, table, types) for node in region.nodes)
    inputs = tuple(table[value] for value in region.inputs)
    return Graph(inputs, nodes, tuple(table[value] for value in region.outputs), tuple(types))
