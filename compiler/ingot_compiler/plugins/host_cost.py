"""What the host is expected to take for a node: an estimate, good for choosing between claims.

In: a node, its types. Out: nanoseconds. Not done here: measuring; what fusion saves.
"""

from __future__ import annotations

import math

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.traits import Trait

_BYTES_PER_NS = 8
_FLOPS_PER_NS = 32


def host_cost_ns(graph: Graph, node: Node) -> int:
    """At least 1; open sizes count as ``typical``."""
    values = (*node.operands, *node.results)
    moved_bytes = sum(typical(graph.types[value].size_bytes) for value in values)
    return 1 + moved_bytes // _BYTES_PER_NS + _flops(graph, node) // _FLOPS_PER_NS


def _flops(graph: Graph, node: Node) -> int:
    """One for each element; of what adds up products as many as in a product of matrices of these
    sizes: M*K, K*N and M*N elements are M*K*N products."""
    counts = [typical(graph.types[value].element_count) for value in node.operands[:2]]
    made = sum(typical(graph.types[value].element_count) for value in node.results)
    simple = Trait.ELEMENTWISE | Trait.MOVEMENT | Trait.INDEXED
    if len(counts) < 2 or OPS_BY_NAME[node.op].traits & simple:
        return made
    return max(made, 2 * math.isqrt(counts[0] * counts[1] * made))
