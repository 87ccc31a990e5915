"""Pass: ``x * sigmoid(x)`` is ``silu``.

In: a graph. Out: a graph with ``silu`` nodes. Not done here: its gated forms.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.match import orders
from ingot_compiler.passes.rewrite import Rewriter, RootOps, rewrite

ROOTS: RootOps = ("mul",)


def fuse_silu(graph: Graph) -> Graph:
    """Recognise SiLU (swish) where the sigmoid has no other use."""
    return rewrite(graph, rule, ROOTS)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a product that is SiLU."""
    if node.op != "mul":
        return None
    for x, gate in orders(node):
        sigmoid = state.made_by(gate, "sigmoid")
        region = state.interior(node, (x,)) if sigmoid and sigmoid.operands == (x,) else None
        if region:
            return (state.emit("silu", (x,), {}, region.source),)
    return None
