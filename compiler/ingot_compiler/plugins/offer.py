"""Which nodes of a graph a plug-in may claim, and what each has to wait for.

In: a graph, the device of each of its values. Out: indices of nodes. Not done here: claiming
(``partition``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node, captured
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.region_rules import bound_symbols
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.used_symbols import attribute_symbols, graph_symbols, type_symbols
from ingot_compiler.lowering.constants.constant_expression import constant_values


def offered_nodes(graph: Graph, device_of: Sequence[int]) -> tuple[int, ...]:
    """The indices of the nodes that may be claimed; ``device_of``: of values, those behind the last
    are the host's. What is made of nothing is not offered: a literal comes along with each claim
    that reads it."""
    folded = constant_values(graph)

    def on_host(value: int) -> bool:
        return value >= len(device_of) or device_of[value] == 0

    return tuple(
        index
        for index, node in enumerate(graph.nodes)
        if node.op not in ("copy", "require")  # they speak of what stands around them
        and Trait.SOURCE not in OPS_BY_NAME[node.op].traits
        and not node.regions
        and not bound_symbols(node)
        and node.results
        and not folded.issuperset(node.results)
        and all(map(on_host, node.results))
    )


def waits_for(graph: Graph) -> tuple[frozenset[int], ...]:
    """For each node the indices of those that must run before it: they make its operands, or bind
    the sizes that it speaks of."""
    makers = graph.producers()
    binders = {
        name: index for index, node in enumerate(graph.nodes) for name in bound_symbols(node)
    }
    return tuple(
        frozenset(
            {makers[value] for value in (*node.operands, *captured(node)) if value in makers}
            | {binders[name] for name in _symbols(graph, node) if name in binders}
        )
        - {index}
        for index, node in enumerate(graph.nodes)
    )


def _symbols(graph: Graph, node: Node) -> set[str]:
    found = set(attribute_symbols(node.attributes))
    found.update(name for region in node.regions for name in graph_symbols(region))
    found.update(name for value in node.results for name in type_symbols(graph.types[value]))
    return found
