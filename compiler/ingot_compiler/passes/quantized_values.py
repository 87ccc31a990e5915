"""What the passes over quantized models ask of a value: integers less a zero point, and their
product with a scale.

In: a rewriter and a value, as the frontend composes DequantizeLinear and the operands of
MatMulInteger and ConvInteger. Out: the integers, zero point and scale. Not done here: any rewrite.
"""

from __future__ import annotations

import math

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import SIGNED, UNSIGNED, DType, dtype_size_bits
from ingot_compiler.passes.match import orders, scalar
from ingot_compiler.passes.rewrite import Rewriter
from ingot_runtime.lazy_dataclass import dataclass

_WIDTHS = (8, 16)


@dataclass(frozen=True, slots=True)
class Centred:
    """``integers - zero``, exact. ``zero``: of any type, broadcasts to the integers; None for 0."""

    integers: int
    zero: int | None


@dataclass(frozen=True, slots=True)
class Dequantized:
    """``(integers - zero) * scale`` in f32, rounded once."""

    centred: Centred
    scale: int


def number(state: Rewriter, value: int) -> float | None:
    """The number that all elements of a literal are, also through casts."""
    while node := state.made_by(value, "cast", "reshape"):
        value = node.operands[0]
    return scalar(state, value)


def centred(state: Rewriter, value: int) -> Centred | None:
    """The narrow integers that ``value`` widens, perhaps less a zero point; None for anything
    else."""
    difference = state.made_by(value, "sub")
    wide, zero = difference.operands if difference else (value, None)
    cast = state.made_by(wide, "cast")
    if cast is None or not _is_narrow(state.type_of(cast.operands[0]).dtype):
        return None
    if state.shape_of(wide) != state.shape_of(value):
        return None
    is_zero = zero is not None and number(state, zero) == 0
    return Centred(cast.operands[0], None if is_zero else zero)


def _is_narrow(dtype: DType) -> bool:
    return dtype in SIGNED | UNSIGNED and dtype_size_bits(dtype) in _WIDTHS


def dequantized(state: Rewriter, value: int) -> Dequantized | None:
    """The integers and the scale whose product ``value`` is; None for anything else."""
    product = state.made_by(value, "mul")
    if product is None or state.type_of(value).dtype != "f32":
        return None
    for difference, scale in orders(product):
        found = centred(state, difference)
        if found and state.shape_of(difference) == state.shape_of(value):
            return Dequantized(found, scale)
    return None


def is_positive(state: Rewriter, value: int) -> bool:
    """Whether a scale is one number above 0 that is known."""
    found = scalar(state, value)
    return found is not None and 0 < found < math.inf


def is_single(state: Rewriter, value: int | None) -> bool:
    """Whether a zero point or scale is one number for the whole tensor."""
    return value is None or all(dim == 1 for dim in state.shape_of(value))


@dataclass(frozen=True, slots=True)
class Quantized:
    """``round(quotient) + zero``, saturated; ``quotient`` is what is divided by the scale.
    ``zero``: a float that broadcasts; None for 0."""

    quotient: int
    zero: int | None


def quantized(state: Rewriter, node: Node) -> Quantized | None:
    """The quantization that ends with the cast ``node``; None for any other node."""
    if node.op != "cast" or not _is_narrow(state.type_of(node.results[0]).dtype):
        return None
    value = node.operands[0]
    low, high = _range(state.type_of(node.results[0]).dtype)
    limits: tuple[tuple[OpName, int], ...] = (("min", high), ("max", low))
    for op, wanted in limits:
        limit = state.made_by(value, op)
        if limit is None or scalar(state, limit.operands[1]) != wanted:
            return None
        value = limit.operands[0]
    added = state.made_by(value, "add")
    rounded = state.made_by(added.operands[0] if added else value, "round")
    if rounded is None:
        return None
    return Quantized(rounded.operands[0], added.operands[1] if added else None)


def _range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type: a model may clip to others."""
    bits = dtype_size_bits(dtype)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype in SIGNED else (0, (1 << bits) - 1)
