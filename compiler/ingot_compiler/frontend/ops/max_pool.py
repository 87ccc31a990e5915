"""ONNX MaxPool: the greatest element per window, perhaps with its position.

In: x[N, C, spatial..]. Out: core ``max_pool``; positions by ``argmax`` over shifted copies. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ingot_compiler.frontend.compose import (
    broadcast_to,
    concat,
    range_mask,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.windows import pool_attributes
from ingot_compiler.ir.attributes import Attributes, attribute_dims
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bits


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    attributes, _ = pool_attributes(context, x)
    result = context.add("max_pool", x, **attributes)
    return (result, _positions(context, x, result, attributes)) if context.wants(1) else (result,)


def _positions(context: OpContext, x: int, result: int, attributes: Attributes) -> int:
    """The greatest element's index in the whole of x, of equals the first; ``storage_order`` 1
    swaps the spatial axes."""
    wanted, rank = context.shape_of(result), context.rank_of(x)
    kernel, strides, dilations, before, after = (
        attribute_dims(attributes, name)
        for name in ("kernel", "strides", "dilations", "pads_before", "pads_after")
    )
    least = context.scalar(context.dtype_of(x), _least(context.dtype_of(x)))
    before, after = (0, 0, *before), (0, 0, *after)
    padded = context.add("pad", x, least, before=before, after=after, mode="constant")
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


def _least(dtype: DType) -> float:
    """The least value of an element type."""
    if dtype in FLOATS:
        return float("-inf")
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


OP = OnnxOp("MaxPool", _translate)
