"""Pass: what a caller keeps from call to call becomes ``append``, so that no later pass loses it.

In: a graph, before it is specialised. Out: the same graph, in which ``concat(input, new)`` that is an
output is ``append(input, new)``. Not done here: where the two lie (``lowering.states``).

Caches of decoders: ``present = concat(past, new)`` along one axis, the length of the past a size of
its own. Names are not looked at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ingot_compiler.ir.bare_symbol import bare_symbol
from ingot_compiler.ir.graph import Graph, Node

_OPERAND_COUNT = 2


def hold_state(graph: Graph) -> Graph:
    """Mark each pair of an input and an output of which one call's output is the next one's
    input."""
    inputs, outputs = set(graph.inputs), Counter(graph.outputs)
    taken: set[int] = set()

    def marked(node: Node) -> Node:
        if not _appends(graph, node) or node.operands[0] in taken:
            return node
        if node.operands[0] not in inputs or outputs[node.results[0]] != 1:
            return node
        taken.add(node.operands[0])
        return replace(node, op="append")

    return replace(graph, nodes=tuple(map(marked, graph.nodes)))


def _appends(graph: Graph, node: Node) -> bool:
    """Whether it puts something behind a tensor whose length along that axis is open, and nothing
    else of the tensor grows with it."""
    if node.op != "concat" or len(node.operands) != _OPERAND_COUNT:
        return False
    past, result = graph.types[node.operands[0]], graph.types[node.results[0]]
    axis = node.integer("axis")
    length = past.shape[axis]
    beside = (*past.shape[:axis], *past.shape[axis + 1 :])
    return (
        bare_symbol(length) is not None
        and length not in beside
        and (*result.shape[:axis], *result.shape[axis + 1 :]) == beside
    )
