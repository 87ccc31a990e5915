"""Numbers of a few bits that share bytes inside a model: spread to one in each byte.

In: a context and a value of bytes. Out: a value of codes. Not done here: initializers of 2- and
4-bit types, which the import spreads (``tensor_data``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import binary_scalar, concat, reshape, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import dim_mul


def spread(context: OpContext, x: int, bits: int) -> int:
    """Bytes [.., n] as codes [.., n * 8 / bits] in u8, the low bits of a byte first."""
    if bits == 8:
        return x
    *outer, last = context.shape_of(x)
    parts: list[int] = []
    for place in range(0, 8, bits):
        moved = binary_scalar(context, "shift_right", x, place) if place else x
        kept = binary_scalar(context, "bitwise_and", moved, (1 << bits) - 1)
        parts.append(unsqueeze(context, kept, (len(outer) + 1,)))
    joined = concat(context, parts, len(outer) + 1)
    return reshape(context, joined, (*outer, dim_mul(last, 8 // bits)))
