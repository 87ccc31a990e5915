"""ONNX MaxPool: the greatest element per window, perhaps with its position.

In: x[N, C, spatial..]. Out: core ``max_pool``; positions by another one, over numbers that hold
them, or by ``argmax`` over shifted copies. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    cast,
    concat,
    iota,
    range_mask,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import pool, pool_attributes
from ingot_compiler.frontend.families.tensors.selection import sort_keys
from ingot_compiler.ir.attributes import Attributes, attribute_dims
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bits

_PLACE_BITS = 32
_PLACES = 1 << _PLACE_BITS


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    attributes, _ = pool_attributes(context, x)
    result = pool(context, "max_pool", x, attributes)
    if not context.wants(1):
        return (result,)
    find = _packed_positions if _packs(context, x) else _positions
    return result, find(context, x, result, attributes)


def _packs(context: OpContext, x: int) -> bool:
    """Whether an element's rank among all and its place in the image fit into 64 bits together, and
    greater places are later ones."""
    places = dim_product(context.shape_of(x)[2:])
    is_narrow = dtype_size_bits(context.dtype_of(x)) <= _PLACE_BITS
    fits = isinstance(places, int) and places <= _PLACES
    return is_narrow and fits and not context.bool_attribute("storage_order", default=False)


def _packed_positions(context: OpContext, x: int, result: int, attributes: Attributes) -> int:
    """Positions by one pool, over numbers that hold both: the rank of each element above what is
    left behind its place, so that of equals the first is the greatest."""
    shape, wanted = context.shape_of(x), context.shape_of(result)
    images, places = shape[:2], dim_product(shape[2:])
    place = reshape(context, cast(context, iota(context, places), "u64"), (1, 1, *shape[2:]))
    rest = context.scalar("u64", _PLACES - 1)
    ranks = cast(context, sort_keys(context, x), "u64")
    high = context.add("shift_left", ranks, context.scalar("u64", _PLACE_BITS))
    packed = context.add("bitwise_or", high, context.add("sub", rest, place))
    best = pool(context, "max_pool", packed, attributes)
    own = context.add("sub", rest, context.add("bitwise_and", best, rest))
    first = context.add("mul", iota(context, dim_product(images)), size_scalar(context, places))
    first = reshape(context, first, (*images, *[1] * (len(shape) - 2)))
    return context.add("add", cast(context, own, "i64"), broadcast_to(context, first, wanted))


def _positions(context: OpContext, x: int, result: int, attributes: Attributes) -> int:
    """The greatest element's index in the whole of x, of equals the first; ``storage_order`` 1
    swaps the spatial axes."""
    wanted, rank = context.shape_of(result), context.rank_of(x)
    kernel, strides, dilations, before, after = (
        attribute_dims(attributes, name)
        for name in ("kernel", "strides", "dilations", "pads_before", "pads_after")
    )
    ranks = _ranks(context, x)
    least = context.scalar(context.dtype_of(ranks), _least(context.dtype_of(ranks)))
    before, after = (0, 0, *before), (0, 0, *after)
    padded = context.add("pad", ranks, least, before=before, after=after, mode="constant")
    copies: list[int] = []
    places: list[int] = []
    for tap in product(*(range(size) if isinstance(size, int) else range(1) for size in kernel)):
        starts = (0, 0, *(t * d for t, d in zip(tap, dilations, strict=True)))
        part = context.add("slice", padded, starts=starts, sizes=wanted, steps=(1, 1, *strides))
        copies.append(reshape(context, part, (*wanted, 1)))
        offsets = [start - pad for start, pad in zip(starts, before, strict=True)]
        place = _flat(context, context.shape_of(x), wanted, offsets, (1, 1, *strides))
        places.append(reshape(context, place, (*wanted, 1)))
    all_copies = concat(context, copies, rank)
    best = context.add("argmax", all_copies, axis=rank, select_last=False, keepdims=True)
    chosen = context.add("gather_elements", concat(context, places, rank), best, axis=rank)
    return reshape(context, chosen, wanted)


def _ranks(context: OpContext, x: int) -> int:
    """Integers in the order of the elements; those that are not of 64 bits already are above the
    least one, so that what stands around an image is none of them."""
    dtype = context.dtype_of(x)
    if dtype in FLOATS:
        return sort_keys(context, x)
    return cast(context, x, "i64") if dtype_size_bits(dtype) < 64 else x


def _least(dtype: DType) -> int:
    """The least integer of an element type."""
    return 0 if dtype in UNSIGNED else -(1 << (dtype_size_bits(dtype) - 1))


def _flat(
    context: OpContext,
    shape: Sequence[Dim],
    wanted: Sequence[Dim],
    offsets: Sequence[Dim],
    strides: Sequence[Dim],
) -> int:
    """Index in x of every window's element at some offset."""
    order = list(range(len(shape)))
    if context.bool_attribute("storage_order"):
        order[2:] = reversed(order[2:])
    total = context.scalar("i64", 0)
    for axis in order:
        index = range_mask(context, wanted, axis)
        if axis > 1:
            index = context.add("mul", index, size_scalar(context, strides[axis]))
            index = context.add("add", index, size_scalar(context, offsets[axis]))
        row = context.add("mul", total, size_scalar(context, shape[axis]))
        total = context.add("add", row, index)
    return broadcast_to(context, total, wanted)


OPS = (OnnxOp("MaxPool", _translate),)
