"""Values that matrix products alone read, as their second operand.

In: a graph, ops between. Out: values. Not done here: what becomes of them.
"""

from __future__ import annotations

from collections.abc import Collection

from ingot_compiler.ir.graph import Graph, captured
from ingot_compiler.ir.op_names import OpName


def right_factors(graph: Graph, between: Collection[OpName] = ()) -> frozenset[int]:
    """They are the right factors of every ``matmul`` that reads them, perhaps through casts and ops
    that are named ``between``, and nothing else reads them."""
    read, elsewhere = set[int](), set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.op == "matmul":
            elsewhere.add(node.operands[0])
            read.add(node.operands[1])
        elif node.op in ("cast", *between) and set(node.results) <= read - elsewhere:
            read.update(node.operands)
        else:
            elsewhere |= {*node.operands, *captured(node)}
    return frozenset(read - elsewhere)
