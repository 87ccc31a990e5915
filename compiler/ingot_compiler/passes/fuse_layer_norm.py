"""Pass: layer normalisation that exporters decompose into means, differences and roots.

In: a graph. Out: a graph with ``layer_norm`` nodes. Not done here: ``rms_norm`` (no mean is
subtracted there).

``(x - mean) / sqrt(mean((x - mean)^2) + epsilon)`` over trailing axes, then optionally ``* scale``
and ``+ bias``.
Source: ONNX LayerNormalization-17.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.passes.match import (
    orders,
    quotient_by_root,
    scalar,
    square_of,
    trailing_mean,
    with_number,
)
from ingot_compiler.passes.rewrite import Rewriter, rewrite


def fuse_layer_norm(graph: Graph) -> Graph:
    """Recognise the normalisation, then let it take a scale and a bias."""
    return rewrite(graph, rule)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a quotient that normalises, or for the product or sum after it."""
    return _normalise(state, node) or absorb_scale(state, node, "layer_norm") or _bias(state, node)


def _normalise(state: Rewriter, node: Node) -> Sequence[int] | None:
    found = quotient_by_root(state, node)
    shifted = with_number(state, state.made_by(found[1], "add")) if found else None
    if found is None or shifted is None or shifted[1] < 0:
        return None
    (centred, _), (variance, epsilon) = found, shifted
    difference = state.made_by(centred, "sub")
    mean = trailing_mean(state, difference.operands[1]) if difference else None
    spread = trailing_mean(state, variance)
    if (
        difference is None
        or mean is None
        or spread is None
        or mean != (difference.operands[0], spread[1])
    ):
        return None
    squared = square_of(state, spread[0])
    x, axis = mean
    region = state.interior(node, (x,)) if squared == centred else None
    if region is None:
        return None
    shape = state.shape_of(x)[axis:]
    ones, zeros = (filled(state, x, number, shape, region.source) for number in (1.0, 0.0))
    return (
        state.emit(
            "layer_norm", (x, ones, zeros), {"axis": axis, "epsilon": float(epsilon)}, region.source
        ),
    )


def filled(
    state: Rewriter, like: int, number: float, shape: tuple[Dim, ...], source: Sequence[int]
) -> int:
    """A tensor of ``shape``, every element ``number``, with the element type of ``like``."""
    literal = state.literal(number, state.type_of(like).dtype, source)
    return state.emit("broadcast_to", (literal,), {"shape": shape}, source)


def trimmed(
    state: Rewriter, value: int, shape: tuple[Dim, ...], source: Sequence[int]
) -> int | None:
    """``value`` with exactly ``shape``, leading axes of length 1 dropped; None when it has another
    shape."""
    found = state.shape_of(value)
    lead = len(found) - len(shape)
    if found == shape:
        return value
    if lead < 0 or found[lead:] != shape or any(dim != 1 for dim in found[:lead]):
        return None
    return state.emit("reshape", (value,), {"shape": shape}, source)


def absorb_scale(state: Rewriter, node: Node, op: OpName) -> Sequence[int] | None:
    """``norm(x, 1, ...) * scale`` is ``norm(x, scale, ...)``."""
    if node.op != "mul":
        return None
    for normalised, factor in orders(node):
        norm = state.made_by(normalised, op)
        if norm is None or scalar(state, norm.operands[1]) != 1 or not _adds_nothing(state, norm):
            continue
        region = state.interior(node, (*norm.operands, factor))
        scale = (
            trimmed(state, factor, state.shape_of(norm.operands[1]), node.source)
            if region
            else None
        )
        if region and scale is not None:
            operands = (norm.operands[0], scale, *norm.operands[2:])
            return (state.emit(op, operands, dict(norm.attributes), region.source),)
    return None


def _adds_nothing(state: Rewriter, norm: Node) -> bool:
    return len(norm.operands) < 3 or scalar(state, norm.operands[2]) == 0


def _bias(state: Rewriter, node: Node) -> Sequence[int] | None:
    """``layer_norm(x, scale, 0) + bias`` is ``layer_norm(x, scale, bias)``."""
    if node.op != "add":
        return None
    for normalised, added in orders(node):
        norm = state.made_by(normalised, "layer_norm")
        if norm is None or scalar(state, norm.operands[2]) != 0:
            continue
        region = state.interior(node, (*norm.operands, added))
        bias = (
            trimmed(state, added, state.shape_of(norm.operands[2]), node.source) if region else None
        )
        if region and bias is not None:
            operands = (*norm.operands[:2], bias)
            return (state.emit("layer_norm", operands, dict(norm.attributes), region.source),)
    return None
