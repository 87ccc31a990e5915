"""Pass: one spelling for what can be written in several ways; ops that do nothing disappear.

In: a graph. Out: a graph with the same meaning, bit by bit. Not done here: arithmetic on literals
(``fold_literals``), patterns of several ops (``fuse_*``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.canonical import elementwise, movement, operands
from ingot_compiler.passes.rewrite import Rewriter, rewrite_until_stable

_BEFORE = (operands.without_broadcasts, operands.constants_last)


def canonicalise(graph: Graph) -> Graph:
    """Apply the rules of ``canonical`` until none fires."""
    return rewrite_until_stable(graph, _rule)


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    if len(node.results) != 1 or node.regions:
        return None
    for rule in (*_BEFORE, *elementwise.RULES.get(node.op, ()), *movement.RULES.get(node.op, ())):
        found = rule(state, node)
        if found is not None and state.may_replace(node, (found,)):
            return (found,)
    return None
