"""Pass: compute equal things once.

In: a graph. Out: a graph without two nodes of the same op, operands, attributes and mark. Not done
here: recognising equal results of different ops.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.rewrite import Rewriter, rewrite

_Key = tuple[str, tuple[int, ...], str, str]


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Merge equal nodes; the survivor carries the source ordinals of all, values with different
    marks never merge."""
    seen: dict[_Key, Node] = {}

    def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
        if node.regions or not node.results:
            return None
        spelled = _spelled(node.attributes) if node.attributes else ""
        key = node.op, node.operands, spelled, node.mark
        first = seen.setdefault(key, node)
        if first is node:
            return None
        state.merge_source(first.results[0], node.source)
        return first.results

    return rewrite(graph, rule)


def _spelled(attributes: tuple[tuple[str, Attribute], ...]) -> str:
    """Attributes as text: 0.0, -0.0, 0 and False are equal in Python and different here."""
    return repr(attributes)
