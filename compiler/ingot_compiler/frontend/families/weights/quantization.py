"""Linear quantization by composition: scales and zero points along an axis or in blocks.

In: a context and value ids. Out: value ids. Not done here: the bits of low-bit types
(``low_bits``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import broadcast_to, clamp, reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.operand_sizes import with_size
from ingot_compiler.frontend.families.weights.low_bits import convert
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import LOW_BITS, DType

LIMITS: dict[DType, tuple[int, int]] = {
    "i8": (-128, 127),
    "i16": (-(1 << 15), (1 << 15) - 1),
    "i32": (-(1 << 31), (1 << 31) - 1),
    "u8": (0, 255),
    "u16": (0, (1 << 16) - 1),
    "i4": (-8, 7),
    "u4": (0, 15),
    "i2": (-2, 1),
    "u2": (0, 3),
}
_EXACT: tuple[DType, ...] = ("f32", "f64", "i32", "i64")


def along(context: OpContext, parameter: int, x: int, axis: int, block: int = 0) -> int:
    """A scale or zero point in a shape that broadcasts to x's: rank 0, a vector along ``axis``, or
    blocks of it."""
    own, rank = context.shape_of(parameter), context.rank_of(x)
    require(block >= 0, "block_size >= 0", block)
    if not own or own == (1,):
        return reshape(context, parameter, ())
    if block:
        return _along_blocks(context, parameter, x, axis, block)
    if len(own) != 1:
        raise OpTypeError("parameters of rank 0 or 1", context.type_of(parameter))
    if axis >= rank:
        raise OpTypeError(f"an operand of rank > {axis}", context.type_of(x))
    number = one_number(context, parameter)
    if number is not None and own[0] == context.shape_of(x)[axis]:
        return context.scalar(context.dtype_of(parameter), number)
    ones: list[Dim] = [1] * rank
    ones[axis] = own[0]
    return reshape(context, parameter, ones)


def one_number(context: OpContext, parameter: int) -> int | None:
    """The integer that all elements of a vector are, where that is known: quantizers write a zero
    point for each channel, most of which are 0."""
    source = context.translation.stored.get(parameter)
    if source is not None:
        elements = context.translation.elements(source)
        return int(elements[0]) if len(elements) and (elements == elements[0]).all() else None
    found = context.known_ints(parameter)
    return found[0] if found and found.count(found[0]) == len(found) else None


def _along_blocks(context: OpContext, parameter: int, x: int, axis: int, block: int) -> int:
    """Each element of ``parameter`` ``block`` times along ``axis``, as many as x has there."""
    own, shape = context.shape_of(parameter), context.shape_of(x)
    if len(own) != len(shape):
        wanted = f"blocked parameters of rank {len(shape)}"
        raise OpTypeError(wanted, context.type_of(parameter))
    if isinstance(size := shape[axis], int):
        count = -(-size // block)
        wanted = f"{count} blocks of {block} along axis {axis}"
        parameter = with_size(context, parameter, axis, count, wanted)
        own = context.shape_of(parameter)
    head, tail = own[:axis], own[axis + 1 :]
    single = reshape(context, parameter, (*head, own[axis], 1, *tail))
    wide = broadcast_to(context, single, (*head, own[axis], block, *tail))
    joined = reshape(context, wide, (*head, dim_mul(own[axis], block), *tail))
    return slice_axis(context, joined, axis, 0, shape[axis])


def rounded(
    context: OpContext, x: int, zero: int | None, dtype: DType, *, saturate: bool = True
) -> int:
    """round(x) + zero point, saturated; x a float. Floats of low bits round for themselves."""
    if dtype not in LIMITS:
        if zero is not None and dtype == "f4e2m1":
            x = context.add("add", x, convert(context, zero, context.dtype_of(x)))
        return convert(context, x, dtype, saturate=saturate)
    x = context.add("round", x)
    offset = None if zero is None else _offset(context, zero, context.dtype_of(x))
    if offset is not None:
        x = context.add("add", x, offset)
    low, high = (context.scalar(context.dtype_of(x), limit) for limit in LIMITS[dtype])
    return convert(context, clamp(context, x, low, high), dtype)


def centred(context: OpContext, x: int, zero: int | None, dtype: DType) -> int:
    """X - zero point in a wider element type."""
    if zero is not None and context.dtype_of(zero) != context.dtype_of(x):
        raise OpTypeError(f"a zero point of {context.dtype_of(x)}", context.dtype_of(zero))
    wide = convert(context, x, dtype)
    # The zero point of a float is 0, as the standard says.
    if zero is None or context.dtype_of(x) in LOW_BITS - LIMITS.keys():
        return wide
    offset = _offset(context, zero, dtype)
    return wide if offset is None else context.add("sub", wide, offset)


def _offset(context: OpContext, zero: int, dtype: DType) -> int | None:
    """A zero point in a wider element type; None for 0. A known number is written down as it is:
    each op that a model has hundreds of times is seen by every pass."""
    is_exact = dtype in _EXACT and context.dtype_of(zero) in LIMITS.keys() - LOW_BITS
    known = context.known_ints(zero) if is_exact and not context.shape_of(zero) else None
    if not known:
        return convert(context, zero, dtype)
    return context.scalar(dtype, known[0]) if known[0] else None
