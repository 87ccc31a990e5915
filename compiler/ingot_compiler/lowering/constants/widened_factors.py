"""Right factors of products that are 8-bit integers in a wider type: kernels widen them when they
load them, so that no bundle stores them in f32.

In: a graph. Out: such values. Not done here: what else could be folded (``constant_expression``),
the kernels.
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.right_factors import right_factors
from ingot_compiler.ir.rules.window_rules import BYTES

_BETWEEN: tuple[OpName, ...] = ("add", "transpose")


def widened_factors(graph: Graph) -> frozenset[int]:
    """Casts from 8 bits, what is moved of them, and their sums with a number for each column."""
    found = set[int]()
    read = right_factors(graph, _BETWEEN)
    for node in graph.nodes:
        if node.op not in ("cast", *_BETWEEN) or node.results[0] not in read:
            continue
        is_widened = node.op == "cast" and graph.types[node.operands[0]].dtype in BYTES
        if is_widened or not found.isdisjoint(node.operands):
            found.update(node.results)
    return frozenset(found)
