"""Pass: root-mean-square normalisation that exporters decompose.

In: a graph. Out: a graph with ``rms_norm`` nodes. Not done here: ``layer_norm`` (which subtracts
the mean).

``x / sqrt(mean(x^2) + epsilon)`` over trailing axes, then optionally ``* scale``. Source: ONNX
RMSNormalization-23.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.fuse_layer_norm import absorb_scale, filled
from ingot_compiler.passes.match import quotient_by_root, square_of, trailing_mean, with_number
from ingot_compiler.passes.rewrite import Rewriter, RootOps, rewrite

ROOTS: RootOps = ("div", "mul")


def fuse_rms_norm(graph: Graph) -> Graph:
    """Recognise the normalisation, then let it take a scale."""
    return rewrite(graph, rule, ROOTS)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a quotient that normalises, or for the product after it."""
    return _normalise(state, node) or absorb_scale(state, node, "rms_norm")


def _normalise(state: Rewriter, node: Node) -> Sequence[int] | None:
    found = quotient_by_root(state, node)
    shifted = with_number(state, state.made_by(found[1], "add")) if found else None
    mean = trailing_mean(state, shifted[0]) if shifted else None
    if found is None or shifted is None or mean is None or shifted[1] < 0:
        return None
    x, axis = found[0], mean[1]
    region = state.interior(node, (x,)) if square_of(state, mean[0]) == x else None
    if region is None:
        return None
    ones = filled(state, x, 1.0, state.shape_of(x)[axis:], region.source)
    attributes = {"axis": axis, "epsilon": float(shifted[1])}
    return (state.emit("rms_norm", (x, ones), attributes, region.source),)
