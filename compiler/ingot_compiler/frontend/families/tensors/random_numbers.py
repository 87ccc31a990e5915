"""Random numbers: element i of a node's result comes from counter i of the node's stream.

In: a context of a random op, a shape. Out: bits, uniform and normal numbers. Not done here: the
generator (``ir/philox``), where the seed comes from (``random_seed``).

A node with an attribute ``seed`` has the key that is the bits of that f32 (an integer itself, of
Dropout), and stream 0. Others
have the key that the caller gives, and the stream of their number in the file, so that no two
give the same numbers. The formulas are part of what the documents promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from ingot_compiler.frontend.build.compose import binary_scalar, cast, reshape
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.types import FLOATS, DType

_STREAM_BITS = 40  # of a counter, for the elements of one node's result


def random_bits(context: OpContext, shape: Sequence[Dim]) -> int:
    """64 random bits for each element: u64."""
    seed = context.attributes.get("seed")
    if isinstance(seed, float | int):
        whole = seed if isinstance(seed, int) else int(np.float32(seed).view(np.uint32))
        key, stream = context.scalar("u64", whole % (1 << 64)), 0
    else:
        given = context.translation.seed
        if given is None:
            raise Unsupported("random numbers without a seed in a function's body")
        key, stream = cast(context, given, "u64"), context.source[0] + 1
    places = context.add("iota", dtype="u64", length=dim_product(tuple(shape)))
    counters = binary_scalar(context, "add", places, stream << _STREAM_BITS)
    return reshape(context, context.add("philox", counters, key), shape)


def uniform(context: OpContext, dtype: DType, shape: Sequence[Dim]) -> int:
    """Numbers in [0, 1): 24 bits as f32, 53 as f64."""
    bits = random_bits(context, shape)
    if dtype == "f64":
        whole = binary_scalar(context, "shift_right", bits, 11)
        return binary_scalar(context, "mul", cast(context, whole, "f64"), 2.0**-53)
    whole = binary_scalar(context, "shift_right", _low(context, bits), 8)
    return binary_scalar(context, "mul", cast(context, whole, "f32"), 2.0**-24)


def normal(context: OpContext, dtype: DType, shape: Sequence[Dim]) -> int:
    """Normal numbers by Box and Muller, of 32 bits for the radius and 32 for the angle; computed in
    f32, or in f64 for f64."""
    wide: DType = "f64" if dtype == "f64" else "f32"
    bits = random_bits(context, shape)
    low = cast(context, binary_scalar(context, "add", _low(context, bits), 1), wide)
    high = cast(context, binary_scalar(context, "shift_right", bits, 32), wide)
    log = context.add("log", binary_scalar(context, "mul", low, 2.0**-32))
    radius = context.add("sqrt", binary_scalar(context, "mul", log, -2.0))
    angle = binary_scalar(context, "mul", high, 2.0 * pi * 2.0**-32)
    return context.add("mul", radius, context.add("cos", angle))


def scaled_to(context: OpContext, x: int, factor: float, offset: float, dtype: DType) -> int:
    """``x * factor + offset`` in another element type."""
    scaled = binary_scalar(context, "mul", x, factor)
    return cast(context, binary_scalar(context, "add", scaled, offset), dtype)


def wanted_dtype(
    context: OpContext, default: DType, *, floats_only: bool = True, name: str = "dtype"
) -> DType:
    """The attribute ``dtype``, or that of another name.

    Raises:
        Unsupported: a type that ONNX or Ingot has no random numbers of.
    """
    if name not in context.attributes:
        return default
    number = context.int_attribute(name, 0)
    dtype = dtype_of(number)
    if dtype is None or (floats_only and dtype not in FLOATS):
        raise Unsupported(f"random numbers of {onnx_dtype_name(number)}")
    return dtype


def wanted_shape(context: OpContext) -> tuple[Dim, ...]:
    """The attribute ``shape``, or that of the operand."""
    if context.operands:
        return context.shape_of(context.operand(0))
    return context.ints_or("shape", ())


def _low(context: OpContext, bits: int) -> int:
    return binary_scalar(context, "bitwise_and", bits, (1 << 32) - 1)
