"""Sorting and picking: orders along an axis, positions of true elements.

In: a context and value ids. Out: value ids. Not done here: sorting itself (core ``argsort``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    reduce,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bits

_UNSIGNED_OF: dict[DType, DType] = {"i8": "u8", "i16": "u16", "i32": "u32", "i64": "u64"}


def sort_keys(context: OpContext, x: int, *, largest: bool = False) -> int:
    """Unsigned integers in the order of the elements of x, or in the reverse order; equal elements
    have equal keys, NaN is the largest."""
    dtype = context.dtype_of(x)
    if dtype in FLOATS:
        keys = _float_keys(context, cast(context, x, "f64" if dtype == "f64" else "f32"))
    elif dtype in UNSIGNED or dtype == "bool":
        keys = cast(context, x, "u8" if dtype == "bool" else dtype)
    else:
        target = _UNSIGNED_OF[dtype]
        sign = context.scalar(target, 1 << dtype_size_bits(dtype) - 1)
        keys = context.add("bitwise_xor", context.add("bit_cast", x, dtype=target), sign)
    return context.add("bitwise_not", keys) if largest else keys


def _float_keys(context: OpContext, x: int) -> int:
    """Bits of numbers below 0 flipped, the sign of others set: -0 is no number below 0, and has the
    bits of 0 once 0 is added. Nothing is used twice but x, so it is all one kernel."""
    target: DType = "u64" if context.dtype_of(x) == "f64" else "u32"
    bits_count, zero = dtype_size_bits(target), context.scalar(context.dtype_of(x), 0.0)
    greatest = context.scalar(target, (1 << bits_count) - 1)
    highest = context.scalar(target, 1 << bits_count - 1)
    flipped = context.add("select", context.add("less", x, zero), greatest, highest)
    bits = context.add("bit_cast", context.add("add", x, zero), dtype=target)
    keys = context.add("bitwise_xor", bits, flipped)
    return context.add("select", context.add("isnan", x), greatest, keys)


def order(context: OpContext, x: int, *, largest: bool, count: Dim | None = None) -> int:
    """i64[.., count]: the positions of each row's first elements, sorted; of equals the earlier one
    comes first. NaN is the largest."""
    keys = sort_keys(context, x, largest=largest)
    count = context.shape_of(x)[-1] if count is None else count
    return context.add("argsort", keys, count=count)


def positions_of_true(context: OpContext, mask: int) -> int:
    """i64[r]: ascending positions of the true elements of a bool vector; r is known at run time
    only."""
    total = reduce(context, cast(context, mask, "i64"), "sum", (0,), keepdims=True)
    (found,) = context.read_dims(total)
    return context.add("positions_of_true", mask, count=found)


def split_index(
    context: OpContext, index: int, sizes: tuple[Dim, ...], *, is_inside: bool
) -> list[int]:
    """Row-major positions as one index per axis, i64. Where positions are known to lie inside,
    known sizes are divided by in 32 bits: a division by a constant is then a multiplication in
    lanes."""
    count = dim_product(sizes)
    is_short = is_inside and isinstance(count, int) and count < 1 << 31
    dtype: DType = "i32" if is_short else "i64"
    index = cast(context, index, dtype)
    parts: list[int] = []
    for size in reversed(sizes[1:]):
        length = cast(context, size_scalar(context, size), dtype)
        one = context.add("max", length, context.scalar(dtype, 1))
        before = context.add("div", index, one)
        parts.append(context.add("sub", index, context.add("mul", before, one)))
        index = before
    return [cast(context, part, "i64") for part in (index, *reversed(parts))]


def is_true(context: OpContext, x: int) -> int:
    """Whether elements are not 0."""
    if context.dtype_of(x) == "bool":
        return x
    return context.add("logical_not", binary_scalar(context, "equal", x, 0))
