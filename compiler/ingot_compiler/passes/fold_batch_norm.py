"""Pass: batch normalisation goes into the weights before it.

In: a graph. Out: a graph whose ``batch_norm`` nodes with constant parameters are gone: after a
convolution or matmul with constant weights they scale the weights, elsewhere they are a
multiplication and an addition per channel. Not done here: reading constants; new weights are ops on
constants, folded by ``lowering/constant_expression``.

Order of steps, stated because folding must give the same bytes everywhere:
``factor = scale / sqrt(variance + epsilon)``, ``shift = bias - mean * factor``,
``weights * factor``, ``old bias * factor + shift``. Of f16 and bf16 all of it is computed in f32,
where epsilon stays what it is, and the new weights, bias or results are rounded once. Source: ONNX
BatchNormalization-15.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import HALVES, DType
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
    """Per channel: what the value is multiplied by, and what is added then; both ``[channels]``, of
    f32 where the node is of f16 or bf16."""
    scale, bias, mean, variance = (_wide(state, value, source) for value in node.operands[1:])
    epsilon = node.real("epsilon")
    spread = state.emit("sqrt", (state.emit("add", (variance, epsilon), {}, source),), {}, source)
    factor = state.emit("div", (scale, spread), {}, source)
    moved = state.emit("mul", (mean, factor), {}, source)
    return factor, state.emit("sub", (bias, moved), {}, source)


def _wide(state: Rewriter, value: int, source: Sequence[int]) -> int:
    """``value``, in f32 where it is of f16 or bf16."""
    return _cast(state, value, "f32", source) if state.type_of(value).dtype in HALVES else value


def _cast(state: Rewriter, value: int, dtype: DType, source: Sequence[int]) -> int:
    """``value`` in an element type, perhaps its own."""
    if state.type_of(value).dtype == dtype:
        return value
    return state.emit("cast", (value,), {"dtype": dtype}, source)


def _into_convolution(state: Rewriter, node: Node) -> int | None:
    conv = state.made_by(node.operands[0], *_CONVOLUTIONS)
    if conv is None or not all(state.is_constant(value) for value in conv.operands[1:]):
        return None
    region = state.interior(node, (*conv.operands, *node.operands[1:]))
    if region is None:
        return None
    factor, shift = _factor_and_shift(state, node, region.source)
    dtype = state.type_of(conv.operands[1]).dtype
    scaled = _cast(state, _scaled_weights(state, conv, factor, region), dtype, region.source)
    bias = _scaled_bias(state, conv.operands[2:], factor, shift, dtype, region)
    return state.emit(
        conv.op, (conv.operands[0], scaled, bias), dict(conv.attributes), region.source
    )


def _scaled_weights(state: Rewriter, conv: Node, factor: int, region: Interior) -> int:
    """``[out, in / groups, ...]`` of a convolution, ``[in, out / groups, ...]`` of a transposed one,
    not yet rounded to the type of the weights."""
    weights = _wide(state, conv.operands[1], region.source)
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
    state: Rewriter, bias: Sequence[int], factor: int, shift: int, dtype: DType, region: Interior
) -> int:
    """The new bias, of ``dtype``."""
    if bias:
        old = _wide(state, bias[0], region.source)
        scaled = state.emit("mul", (old, factor), {}, region.source)
        shift = state.emit("add", (scaled, shift), {}, region.source)
    return _cast(state, shift, dtype, region.source)


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
    dtype = state.type_of(right).dtype
    weights = state.emit("mul", (_wide(state, right, region.source), factor), {}, region.source)
    weights = _cast(state, weights, dtype, region.source)
    scaled = state.emit("matmul", (left, weights), {}, region.source)
    total = _scaled_bias(state, bias, factor, shift, dtype, region)
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
    region, value = Interior((node,)), node.operands[0]
    factor, shift = _factor_and_shift(state, node, node.source)
    shape = (-1, *(1,) * (state.type_of(value).rank - 2))
    per_channel = _reshaped(state, factor, shape, region)
    scaled = state.emit("mul", (_wide(state, value, node.source), per_channel), {}, node.source)
    moved = state.emit("add", (scaled, _reshaped(state, shift, shape, region)), {}, node.source)
    return _cast(state, moved, state.type_of(value).dtype, node.source)
