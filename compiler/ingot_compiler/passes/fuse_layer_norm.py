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
from ingot_compiler.passes.rewrite import Rewriter, RootOps, in_shape, rewrite

ROOTS: RootOps = ("div", "mul", "add")


def fuse_layer_norm(graph: Graph) -> Graph:
    """Recognise the normalisation, then let it take a scale and a bias."""
    return rewrite(graph, rule, ROOTS)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a quotient that normalises, or for the product or sum after it."""
    return _normalise(state, node) or absorb_scale(state, node, "layer_norm") or _bias(state, node)


def _normalise(state: Rewriter, node: Node) -> Sequence[int] | None:
    found = quotient_by_root(state, node)
    shifted = with_number(state, state.made_by(found[1], "add")) if found else None
    if found is None or shifted is None or shifted[1] < 0:
        return None
    (centred, _), (variance, epsilon) = found, shifted
    centre, spread = _centre(state, centred), trailing_mean(state, variance)
    if centre is None or spread is None or centre[1] != spread[1]:
        return None
    x, axis = centre
    region = state.interior(node, (x,)) if square_of(state, spread[0]) == centred else None
    if region is None:
        return None
    shape = state.shape_of(x)[axis:]
    ones, zeros = (filled(state, x, number, shape, region.source) for number in (1.0, 0.0))
    attributes = {"axis": axis, "epsilon": float(epsilon)}
    return (state.emit("layer_norm", (x, ones, zeros), attributes, region.source),)


def _centre(state: Rewriter, value: int) -> tuple[int, int] | None:
    """``(x, axis)`` when ``value`` is ``x`` less its mean over all axes from ``axis`` on."""
    difference = state.made_by(value, "sub")
    mean = trailing_mean(state, difference.operands[1]) if difference else None
    return mean if difference and mean and mean[0] == difference.operands[0] else None


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
    if lead < 0 or found[lead:] != shape or any(dim != 1 for dim in found[:lead]):
        return None
    return in_shape(state, value, shape, source)


def absorb_scale(state: Rewriter, node: Node, op: OpName) -> Sequence[int] | None:
    """``norm(x, 1, ...) * scale`` is ``norm(x, scale, ...)``."""
    if node.op != "mul":
        return None
    for normalised, factor in orders(node):
        norm = state.made_by(normalised, op)
        if norm and scalar(state, norm.operands[1]) == 1 and _adds_nothing(state, norm):
            found = _with_vector(state, node, norm, 1, factor)
            if found:
                return found
    return None


def _adds_nothing(state: Rewriter, norm: Node) -> bool:
    return len(norm.operands) < 3 or scalar(state, norm.operands[2]) == 0


def _bias(state: Rewriter, node: Node) -> Sequence[int] | None:
    """``layer_norm(x, scale, 0) + bias`` is ``layer_norm(x, scale, bias)``."""
    if node.op != "add":
        return None
    for normalised, added in orders(node):
        norm = state.made_by(normalised, "layer_norm")
        if norm and scalar(state, norm.operands[2]) == 0:
            found = _with_vector(state, node, norm, 2, added)
            if found:
                return found
    return None


def _with_vector(
    state: Rewriter, node: Node, norm: Node, position: int, value: int
) -> Sequence[int] | None:
    """What stands for ``node`` when ``norm`` takes ``value`` as the operand at ``position``; None
    when it cannot."""
    region = state.interior(node, (*norm.operands, value))
    if region is None:
        return None
    vector = trimmed(state, value, state.shape_of(norm.operands[position]), node.source)
    if vector is None:
        return None
    operands = (*norm.operands[:position], vector, *norm.operands[position + 1 :])
    return (state.emit(norm.op, operands, dict(norm.attributes), region.source),)
