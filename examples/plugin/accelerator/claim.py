"""The ops that the accelerator wants: ``relu(x + y)`` of equal shapes, and a relu alone.

In: an offer. Out: claims; what it leaves out is computed by the host. Not done here: how they are
computed (``lower``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.plugins.claim import Offer, OpClaim


def claim(offer: Offer) -> list[OpClaim]:
    """Claim what the library has a function for, if it is worth a call."""
    graph, offered = offer.graph, set(offer.nodes)
    makers, users = graph.producers(), graph.users()
    least = offer.settings["least_elements"]
    assert isinstance(least, int)
    found: list[OpClaim] = []
    for index in offer.nodes:
        node = graph.nodes[index]
        kind = graph.types[node.results[0]]
        if node.op != "relu" or kind.dtype != "f32" or typical(kind.element_count) < least:
            continue
        found.append(OpClaim("relu", (index,)))
        value = node.operands[0]
        inner = makers.get(value)
        alone = users[value] == [index] and value not in graph.outputs
        if inner in offered and alone and _is_sum(graph, inner):
            found.append(OpClaim("add_relu", (inner, index)))
    return found


def _is_sum(graph: Graph, index: int) -> bool:
    """Whether a node adds two tensors of its result's shape: the library broadcasts nothing."""
    node = graph.nodes[index]
    shape = graph.types[node.results[0]].shape
    return node.op == "add" and all(graph.types[each].shape == shape for each in node.operands)
