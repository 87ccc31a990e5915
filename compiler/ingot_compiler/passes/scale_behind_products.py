"""Pass: a product with weights of 8 bits whose columns are scaled is one with the integers, and its
columns are scaled.

In: a graph behind the passes over integers. Out: a graph where ``a @ ((q - z) * s)`` is
``(a @ (q - z)) * s``: kernels read bytes, widen them on the way, and the bundle stores nothing
wider. Not done here: scales along the summed axis, weights that something else reads too and that
would be stored twice.

It rounds once for a sum, where the weights were rounded one by one. Of f16 and bf16 both the
weights and the product are computed in f32 and the result is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.right_factors import right_factors
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import DType
from ingot_compiler.passes.quantized_values import Centred, Dequantized, dequantized, number
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite

_INTEGERS, _MIDDLE = range(-128, 256), 128


def scale_behind_products(graph: Graph) -> Graph:
    """Scale columns of results instead of columns of weights."""
    return rewrite(graph, partial(_rule, right_factors(graph)), ("matmul",))


def _rule(read_alone: AbstractSet[int], state: Rewriter, node: Node) -> Sequence[int] | None:
    a, b = node.operands
    found = _weights(state, b) if b in read_alone and state.is_constant(b) else None
    if found is None or state.type_of(b).rank != 2:
        return None
    if state.type_of(found.centred.integers).dtype not in BYTES:
        return None
    scale, numbers = _of_columns(state, found.scale, node), _numbers(state, found.centred, node)
    if scale is None or numbers is None:
        return None
    product = state.emit("matmul", (_cast(state, a, "f32", node), numbers), {}, node.source)
    scaled = state.emit("mul", (product, scale), {}, node.source)
    return (_cast(state, scaled, state.type_of(node.results[0]).dtype, node),)


def _weights(state: Rewriter, b: int) -> Dequantized | None:
    """What a matrix is dequantized from, perhaps before it was rounded to 16 bits."""
    narrowed = state.made_by(b, "cast") if state.type_of(b).dtype in ("f16", "bf16") else None
    return dequantized(state, narrowed.operands[0] if narrowed else b)


def _of_columns(state: Rewriter, parameter: int, node: Node) -> int | None:
    """A scale or zero point of [K, N] as one for each column or for all; None for any other."""
    shape = state.shape_of(parameter)
    if any(size != 1 for size in shape[:-1]):
        return None
    return in_shape(state, parameter, shape[-1:], node.source)


def _numbers(state: Rewriter, weights: Centred, node: Node) -> int | None:
    """The integers in f32, less their zero points; None where those are not one integer for each
    column or for all."""
    if weights.zero is None:
        return _cast(state, weights.integers, "f32", node)
    columns = _zero_point(state, weights.zero, node)
    if columns is None:
        return None
    if (
        state.type_of(weights.integers).dtype == "u8"
        and number(state, _unmoved(state, weights.zero)) == _MIDDLE
    ):
        moved = state.emit("sub", (weights.integers, state.literal(_MIDDLE, "u8")), {}, node.source)
        signed = state.emit("bit_cast", (moved,), {"dtype": "i8"}, node.source)
        return _cast(state, signed, "f32", node)
    wide = _cast(state, weights.integers, "i32", node)
    addend = state.emit("neg", (columns,), {}, node.source)
    return _cast(state, state.emit("add", (wide, addend), {}, node.source), "f32", node)


def _zero_point(state: Rewriter, zero: int, node: Node) -> int | None:
    """A zero point of each column in i32, or that of all."""
    shape = state.shape_of(zero)
    zero = _unmoved(state, zero)
    known = number(state, zero)
    if known is not None:
        return state.literal(int(known), "i32", node.source) if known in _INTEGERS else None
    cast = state.made_by(zero, "cast")
    narrow = zero if cast is None else cast.operands[0]
    if state.type_of(narrow).dtype not in BYTES or any(size != 1 for size in shape[:-1]):
        return None
    return in_shape(state, _cast(state, narrow, "i32", node), shape[-1:], node.source)


def _unmoved(state: Rewriter, value: int) -> int:
    """What a value is that is reshaped or transposed."""
    while moved := state.made_by(value, "reshape", "transpose"):
        (value,) = moved.operands
    return value


def _cast(state: Rewriter, value: int, dtype: DType, node: Node) -> int:
    if state.type_of(value).dtype == dtype:
        return value
    return state.emit("cast", (value,), {"dtype": dtype}, node.source)
