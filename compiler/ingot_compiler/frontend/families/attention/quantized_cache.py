"""Rows of a decoder's cache as integers of 8 or 4 bits.

In: a node of GroupQueryAttention, the scale of its keys or of its values: one, or one for each
element of a head. Out: rows as integers, and what integers stand for. Not done here: the cache that holds
them (``whole_cache``, ``window_cache``).

Integers of 8 bits are i8; two of 4 bits, less their least one, are a byte, the first one its lower
half.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    clamp,
    reshape,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.families.weights.nibbles import spread
from ingot_compiler.ir.dims import Dim, dim_floordiv
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

_HALF = 8
"""What is added to an integer of 4 bits."""


@dataclass(frozen=True, slots=True)
class QuantizedCache:
    """``scale``: in the type of the rows, () or [1, groups, 1, D]; ``bits``: 8 or 4."""

    context: OpContext
    scale: int
    bits: int
    dtype: DType

    @classmethod
    def of(cls, context: OpContext, name: str, rows: int, position: int) -> QuantizedCache | None:
        """That of the keys (``k``) or values (``v``), whose scale is the operand at ``position``;
        None for a cache of floats. ``rows``: new ones [B, groups, S, D]."""
        kinds = ("NONE", "PER_TENSOR", "PER_CHANNEL")
        kind = context.string_attribute(f"{name}_quant_type", "NONE", kinds)
        if kind == "NONE":
            return None
        bits = context.int_attribute("kv_cache_bit_width", 8)
        past = context.optional(3 if name == "k" else 4)
        held = None if past is None else context.dtype_of(past)
        if (bits, held) not in ((8, "i8"), (4, "u8")):
            raise Unsupported("a quantized cache that is neither of 8 bits in i8 nor of 4 in u8")
        _, groups, _, depth = context.shape_of(rows)
        shape: tuple[Dim, ...] = () if kind == "PER_TENSOR" else (1, groups, 1, depth)
        dtype = context.dtype_of(rows)
        scale = cast(context, reshape(context, context.operand(position), shape), dtype)
        return cls(context, scale, bits, dtype)

    def width(self, depth: int) -> int:
        """How many integers of the cache a head of ``depth`` numbers takes."""
        return depth * self.bits // 8

    def integers(self, rows: int) -> int:
        """[B, groups, S, width] of rows [B, groups, S, D]."""
        context, least = self.context, -(1 << self.bits - 1)
        quotient = context.add("round", context.add("div", rows, self.scale))
        limits = (context.scalar(self.dtype, limit) for limit in (least, -least - 1))
        codes = clamp(context, quotient, *limits)
        if self.bits != 4:
            return cast(context, codes, "i8")
        codes = cast(context, binary_scalar(context, "add", codes, _HALF), "u8")
        *outer, depth = context.shape_of(codes)
        pairs = reshape(context, codes, (*outer, dim_floordiv(depth, 2), 2))
        lower, upper = (
            reshape(context, slice_axis(context, pairs, 4, place, 1), context.shape_of(pairs)[:4])
            for place in (0, 1)
        )
        return context.add("bitwise_or", lower, binary_scalar(context, "shift_left", upper, 4))

    def floats(self, held: int) -> int:
        """What the integers of a cache stand for."""
        context = self.context
        codes = cast(context, spread(context, held, self.bits), self.dtype)
        if self.bits == 4:
            codes = binary_scalar(context, "sub", codes, _HALF)
        return context.add("mul", codes, self.scale)
