"""Integers written as strings (ONNX Cast-25): digits, and a sign where they are below zero.

In: a context, integers. Out: strings in their shape. Not done here: floats and
truths (``write_floats``).

Each string has a row of as many bytes as the longest integer has, and ends where that ends.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    concat,
    iota,
    reduce,
    reshape,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.dims import dim_mul, dim_product
from ingot_compiler.ir.rules.typing_rules import INTEGERS

_DIGITS = 20  # of the greatest u64
_WIDTH = _DIGITS + 1


def written_integers(context: OpContext, x: int) -> Strings:
    """The strings of integers; Unsupported for other numbers."""
    dtype, shape = context.dtype_of(x), context.shape_of(x)
    if dtype not in INTEGERS:
        raise Unsupported(f"a cast of {dtype} to strings")
    count = dim_product(shape)
    flat = reshape(context, x, (count, 1))
    wide = flat if dtype == "u64" else cast(context, flat, "i64")
    below = context.add("less", wide, context.scalar(context.dtype_of(wide), 0))
    size = wide
    if dtype != "u64":
        size = context.add("select", below, context.add("neg", wide), wide)
        size = context.add("bit_cast", size, dtype="u64")
    powers = written(context, "u64", [10**place for place in reversed(range(_DIGITS))])
    rest = context.add("div", size, powers)
    tens = context.add("mul", binary_scalar(context, "div", rest, 10), context.scalar("u64", 10))
    digits = binary_scalar(context, "add", context.add("sub", rest, tens), ord("0"))
    bytes_ = concat(context, [cast(context, reshape(context, below, (count, 1)), "u64"), digits], 1)
    begun = cast(context, context.add("less", context.scalar("u64", 0), rest), "i64")
    length = reduce(context, begun, "sum", (1,), keepdims=True)
    length = binary_scalar(context, "max", length, 1)
    first = context.add("sub", context.scalar("i64", _WIDTH), length)
    sign = context.add("equal", iota(context, _WIDTH), binary_scalar(context, "sub", first, 1))
    bytes_ = context.add("select", sign, context.scalar("u64", ord("-")), bytes_)
    start = context.add(
        "mul", reshape(context, iota(context, count), (count, 1)), context.scalar("i64", _WIDTH)
    )
    begin = context.add("sub", context.add("add", start, first), cast(context, below, "i64"))
    end = binary_scalar(context, "add", start, _WIDTH)
    pool = reshape(context, cast(context, bytes_, "u8"), (dim_mul(count, _WIDTH),))
    return Strings(reshape(context, concat(context, [begin, end], 1), (*shape, 2)), pool)
