"""Pass: a transposed convolution of quantized tensors becomes a convolution of quantized tensors, which
has kernels for integers.

In: a graph as the frontend wrote it, before the passes over integers. Out: a graph in which weights
are rearranged as integers, and dequantized then. Not done here: groups, weights with zero points,
what is left in floats (``expand_conv_transpose``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.passes.expand_conv_transpose import (
    phase_bias,
    phase_weights,
    phase_window,
    rearranged,
    transposed_axes,
)
from ingot_compiler.passes.quantized_values import Dequantized, dequantized, is_single
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite


def expand_quantized_transpose(graph: Graph) -> Graph:
    """Replace every ``conv_transpose`` of bytes with one scale, by bytes with one per channel."""
    return rewrite(graph, _rule, ("conv_transpose",))


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    x, w, *bias = node.operands
    image, weights = dequantized(state, x), dequantized(state, w)
    axes = transposed_axes(state, node)
    if image is None or weights is None or axes is None or node.integer("groups") != 1:
        return None
    scale = _of_channels(state, weights, node)
    if not (_is_byte(state, image) and _is_byte(state, weights)) or scale is None:
        return None
    phases, source = prod(axis.stride for axis in axes), node.source
    integers = phase_weights(state, node, weights.centred.integers, axes)
    wide = state.emit("cast", (integers,), {"dtype": "f32"}, source)
    rows = phase_bias(state, node, scale, phases)
    rows = in_shape(state, rows, (state.shape_of(rows)[0], 1, *(1 for _ in axes)), source)
    operands = (x, state.emit("mul", (wide, rows), {}, source))
    biases = [phase_bias(state, node, value, phases) for value in bias]
    result = state.emit("conv", (*operands, *biases), phase_window(axes, 1), source)
    return (rearranged(state, node, result, state.shape_of(w)[1], axes),)


def _is_byte(state: Rewriter, value: Dequantized) -> bool:
    return state.type_of(value.centred.integers).dtype in BYTES


def _of_channels(state: Rewriter, weights: Dequantized, node: Node) -> int | None:
    """A scale for each channel of the result; None where scales or zero points are others."""
    channels = state.shape_of(node.operands[1])[1]
    shape = state.shape_of(weights.scale)
    if weights.centred.zero is not None:
        return None
    if is_single(state, weights.scale):
        one = in_shape(state, weights.scale, (1,), node.source)
        return state.emit("broadcast_to", (one,), {"shape": (channels,)}, node.source)
    axis = len(shape) - len(state.shape_of(node.operands[1])) + 1
    if axis not in range(len(shape)) or shape[axis] != channels or shape.count(1) < len(shape) - 1:
        return None
    return in_shape(state, weights.scale, (channels,), node.source)
