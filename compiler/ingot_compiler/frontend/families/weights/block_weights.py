"""Constant matrices of 4- and 8-bit integers that are scaled in blocks, or of 4-bit ones that are in
columns: noted where they are dequantized, and kept as they are where a product reads them.

In: a context and value ids. Out: value ids. Not done here: the kernel of ``matmul_blocks``, what a
column is in blocks (``column_weights``), products of integers (passes find them).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.frontend.build.compose import cast, full, reshape, slice_axis, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.operand_sizes import with_size
from ingot_compiler.frontend.build.translation import BlockWeights
from ingot_compiler.frontend.families.weights.column_weights import in_blocks
from ingot_compiler.ir.ops.block_products import WORD_BITS
from ingot_compiler.ir.types import FLOATS, DType

BITS: dict[DType, int] = {"i4": 4, "u4": 4, "i8": 8, "u8": 8}


def note_block_weights(context: OpContext, value: int, weights: BlockWeights) -> None:
    """Remember what ``value`` is made of, if a product may read that in its place."""
    parts = [part for part in (weights.numbers, weights.scale, weights.zero) if part is not None]
    bits, rank = BITS.get(context.dtype_of(weights.numbers)), context.rank_of(weights.scale)
    fits = (bits is not None and rank == 2) if weights.block else (bits == 4 and rank < 2)
    fits = fits and context.dtype_of(weights.scale) in ("f32", "f16", "bf16")
    if fits and context.rank_of(value) == 2 and all(is_stored(context, part) for part in parts):
        context.translation.block_weights[value] = weights


def note_transposed(context: OpContext, value: int, result: int) -> None:
    """A transposed matrix is made of the same blocks, along its other axis."""
    found = context.translation.block_weights.get(value)
    if found is not None and result != value:
        turned = replace(found, is_turned=not found.is_turned)
        context.translation.block_weights[result] = turned


def is_stored(context: OpContext, value: int) -> bool:
    """Whether a value is a constant of the model."""
    for node in reversed(context.translation.builder.nodes):
        if value in node.results:
            return node.op in ("constant", "literal")
    return False


def block_product(context: OpContext, a: int, b: int) -> int | None:
    """``a`` times a matrix that is noted, read in its blocks; None where it is not, or where blocks
    do not divide the depth or are scaled along columns."""
    weights = context.translation.block_weights.get(b)
    if weights is None or context.dtype_of(a) not in FLOATS or context.rank_of(a) < 2:
        return None
    if not weights.block:
        weights = in_blocks(context, a, weights)
        if weights is None:
            return None
    bits = BITS[context.dtype_of(weights.numbers)]
    depth, own = context.shape_of(b)[0], context.shape_of(a)[-1]
    along_depth = weights.axis == (1 if weights.is_turned else 0)
    if not isinstance(depth, int) or (isinstance(own, int) and own != depth):
        return None
    if not along_depth or depth % weights.block or weights.block * bits % WORD_BITS:
        return None
    a = with_size(context, a, -1, depth, f"a depth of {depth}")
    signed = context.dtype_of(weights.numbers)[0] == "i"
    parameters = [_by_column(context, weights.scale, weights)]
    if weights.zero is not None:
        parameters.append(_by_column(context, as_codes(context, weights.zero), weights))
    elif not signed:  # where the op has none, it takes the middle, ONNX 0
        parameters.append(full(context, "u8", 0, context.shape_of(parameters[0])))
    codes = _by_column(context, as_codes(context, weights.numbers), weights)
    numbers = packed(context, codes) if bits == 4 else codes
    return multiply(context, a, [numbers, *parameters], bits, weights.block, signed=signed)


def multiply(
    context: OpContext,
    a: int,
    operands: list[int],
    bits: int,
    block: int,
    *,
    signed: bool,
    rounded: bool = False,
) -> int:
    """``matmul_blocks`` in the element type of ``a``."""
    wide = cast(context, a, "f32")
    result = context.add(
        "matmul_blocks", wide, *operands, bits=bits, block=block, signed=signed, rounded=rounded
    )
    return cast(context, result, context.dtype_of(a))


def as_codes(context: OpContext, x: int) -> int:
    """The bits of integers of at most 8 bits, as u8."""
    return x if context.dtype_of(x) == "u8" else context.add("bit_cast", x, dtype="u8")


def packed(context: OpContext, codes: int) -> int:
    """4-bit codes in pairs along the last axis, the first in the low bits of a byte."""
    *outer, last = context.shape_of(codes)
    assert isinstance(last, int)
    pairs = reshape(context, codes, (*outer, last // 2, 2))
    axis = len(outer) + 1
    low, high = (slice_axis(context, pairs, axis, place, 1) for place in (0, 1))
    moved = context.add("mul", high, context.scalar("u8", 16))
    return reshape(context, context.add("add", low, moved), (*outer, last // 2))


def _by_column(context: OpContext, x: int, weights: BlockWeights) -> int:
    """Numbers or parameters of [K, N] as [N, K]; those of a matrix that is turned lie so."""
    return x if weights.is_turned else transpose(context, x, (1, 0))
