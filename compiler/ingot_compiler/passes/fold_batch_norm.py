"""Pass: batch normalisation goes into the weights before it.

In: a graph. Out: a graph whose ``batch_norm`` nodes with constant parameters are gone: after a
convolution or matmul with constant weights they scale the weights, elsewhere they are a
multiplication and an addition per channel. Not done here: reading constants; new weights are ops on
constants, folded by ``lowering/constant_expression``.

Order of steps, stated because folding must give the same bytes everywhere:
``factor = scale / sqrt(variance + epsilon)``, ``shift = bias - mean * factor``,
``weights * factor``, ``old bias * factor + shift``. Source: ONNX BatchNormalization-15.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.passes.rewrite import Interior, Rewriter, in_shape, rewrite

_CONVOLUTIONS: tuple[OpName, ...] = ("conv", "conv_transpose")


def fold_batch_norm(graph: Graph) -> Graph:
    """Remove every ``batch_norm`` whose parameters are constants."""
    return rewrite(graph, _rule, ("batch_norm",))


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    if node.op != "batch_norm" or not all(state.is_constant(value) for value in node.operands[1:]):
        return None
    return (_into_convolution(state, node) or _into_matmul(state, node) or _alone(state, node),)


def _factor_and_shift(state: Rewriter, node: Node, source: Sequence[int]) -> tuple[int, int]:
    """Per channel: what the value is multiplied by, and what is added then; both ``[channels]``."""
    _, scale, bias, mean, variance = node.operands
    epsilon = node.real("epsilon")
    spread = state.emit("sqrt", (state.emit("add", (variance, epsilon), {}, source),), {}, source)
    factor = state.emit("div", (scale, spread), {}, source)
    moved = state.emit("mul", (mean, factor), {}, source)
    return factor, state.emit("sub", (bias, moved), {}, source)


def _into_convolution(state: Rewriter, node: Node) -> int | None:
    conv = state.made_by(node.operands[0], *_CONVOLUTIONS)
    if conv is None or not all(state.is_constant(value) for value in conv.operands[1:]):
        return None
    region = state.interior(node, (*conv.operands, *node.operands[1:]))
    if region is None:
        return None
    factor, shift = _factor_and_shift(state, node, region.source)
    scaled = _scaled_weights(state, conv, factor, region)
    bias = _scaled_bias(state, conv.operands[2:], factor, shift, region)
    return state.emit(
        conv.op, (conv.operands[0], scaled, bias), dict(conv.attributes), region.source
    )


def _scaled_weights(state: Rewriter, conv: Node, factor: int, region: Interior) -> int:
    """``[out, in / groups, ...]`` of a convolution, ``[in, out / groups, ...]`` of a transposed
    one."""
    weights = conv.operands[1]
    shape = state.shape_of(weights)
    if conv.op == "conv":
        per_channel = _reshaped(state, factor, (-1, *(1,) * (len(shape) - 1)), region)
        return state.emit("mul", (weights, per_channel), {}, region.source)
    groups = conv.integer("groups")
    rows = shape[0]
    assert isinstance(rows, int)
    grouped = _reshaped(state, weights, (groups, rows // groups, *shape[1:]), region)
    per_channel = _reshaped(state, factor, (groups, 1, shape[1], *(1,) * (len(shape) - 2)), region)
    scaled = state.emit("mul", (grouped, per_channel), {}, region.source)
    return _reshaped(state, scaled, shape, region)


def _reshaped(state: Rewriter, value: int, shape: Sequence[Dim], region: Interior) -> int:
    """``value`` in ``shape``; -1 stands for all its elements."""
    sizes = tuple(state.type_of(value).element_count if dim == -1 else dim for dim in shape)
    return in_shape(state, value, sizes, region.source)


def _scaled_bias(
    state: Rewriter, bias: Sequence[int], factor: int, shift: int, region: Interior
) -> int:
    if not bias:
        return shift
    scaled = state.emit("mul", (bias[0], factor), {}, region.source)
    return state.emit("add", (scaled, shift), {}, region.source)


def _into_matmul(state: Rewriter, node: Node) -> int | None:
    """``batch_norm(x @ w [+ b])`` of rank 2, where the channels are the columns."""
    value, bias = _without_bias(state, node.operands[0])
    product = state.made_by(value, "matmul")
    if product is None or state.type_of(value).rank != 2:
        return None
    left, right = product.operands
    if not state.is_constant(right):
        return None
    region = state.interior(node, (left, right, *bias, *node.operands[1:]))
    if region is None:
        return None
    factor, shift = _factor_and_shift(state, node, region.source)
    weights = state.emit("mul", (right, factor), {}, region.source)
    scaled = state.emit("matmul", (left, weights), {}, region.source)
    total = _scaled_bias(state, bias, factor, shift, region)
    return state.emit("add", (scaled, total), {}, region.source)


def _without_bias(state: Rewriter, value: int) -> tuple[int, tuple[int, ...]]:
    """``(x, (b,))`` of ``x + b`` for a constant vector ``b``; ``(value, ())`` otherwise."""
    added = state.made_by(value, "add")
    if added is None:
        return value, ()
    x, bias = added.operands
    is_vector = state.is_constant(bias) and state.type_of(bias).rank <= 1
    return (x, (bias,)) if is_vector else (value, ())


def _alone(state: Rewriter, node: Node) -> int:
    """``x * factor + shift`` with both shaped ``[channels, 1, ...]``."""
    region = Interior((node,))
    factor, shift = _factor_and_shift(state, node, node.source)
    shape = (-1, *(1,) * (state.type_of(node.operands[0]).rank - 2))
    scaled = state.emit(
        "mul", (node.operands[0], _reshaped(state, factor, shape, region)), {}, node.source
    )
    return state.emit("add", (scaled, _reshaped(state, shift, shape, region)), {}, node.source)
