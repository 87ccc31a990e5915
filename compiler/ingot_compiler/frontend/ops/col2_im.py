"""ONNX Col2Im: overlapping blocks added into an image.

In: columns [N, C * block elements, blocks]; image and block shape. Out: the sum of each block
element's image where blocks begin at every place and have few elements; elsewhere core
``conv_transpose`` with weights that are 0 or 1. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ingot_compiler.frontend.compose import cast, range_mask, reshape, slice_axis
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import sizes_of
from ingot_compiler.frontend.windows import span_of, strides_and_dilations
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_product
from ingot_compiler.ir.op_type_error import OpTypeError

_TAPS_MAX = 64  # each is a summand


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    image, block = context.read_dims(context.operand(1)), context.read_dims(context.operand(2))
    count, taps = len(block), dim_product(block)
    if len(image) != count or taps == 0:
        wanted = "image_shape and block_shape of one length, no block size 0"
        raise OpTypeError(wanted, f"{image} and {block}")
    strides, dilations = strides_and_dilations(context, count)
    pads = context.ints_or("pads", [0] * 2 * count)
    if len(pads) != 2 * count or min(strides, default=1) < 1:
        wanted = f"{2 * count} pads and strides above 0"
        raise OpTypeError(wanted, f"pads {pads}, strides {strides}")
    before, after = pads[:count], pads[count:]
    spans = [span_of(*entry) for entry in zip(block, dilations, strict=True)]
    entries = zip(image, before, after, spans, strict=True)
    rooms = [size + low + high - span for size, low, high, span in entries]
    blocks = [dim_floordiv(*entry) + 1 for entry in zip(rooms, strides, strict=True)]
    counted = zip(rooms, blocks, strides, strict=True)
    rests = tuple(room - (number - 1) * stride for room, number, stride in counted)
    batch, rows, _ = sizes_of(context, x, 3)
    channels = dim_floordiv(rows, taps)
    # Every channel is an image of its own, whose elements of a block are the channels.
    columns = reshape(context, x, (batch * channels, taps, *blocks))
    known = [size for size in block if isinstance(size, int)]
    is_dense = len(known) == count and set(strides) <= {1} and min(pads, default=0) >= 0
    if is_dense and prod(known) <= _TAPS_MAX:
        joined = _sum_of_taps(context, columns, known, dilations)
        for axis, entry in enumerate(zip(before, image, strict=True)):
            joined = slice_axis(context, joined, 1 + axis, *entry)
        return (reshape(context, joined, (batch, channels, *image)),)
    weights = _one_hot_weights(context, taps, block)
    joined = context.add(
        "conv_transpose", columns, weights, strides=strides, dilations=dilations,
        pads_before=before, pads_after=after, groups=1, output_padding=rests,
    )  # fmt: skip
    return (reshape(context, joined, (batch, channels, *image)),)


def _sum_of_taps(
    context: OpContext, columns: int, block: Sequence[int], dilations: Sequence[int]
) -> int:
    """Images with their pads of [images, taps, *blocks], where blocks begin at every place."""
    images, _, *blocks = context.shape_of(columns)
    reaches = [(size - 1) * step for size, step in zip(block, dilations, strict=True)]
    zero, total = context.scalar(context.dtype_of(columns), 0), -1
    for number, place in enumerate(product(*map(range, block))):
        shifts = [tap * step for tap, step in zip(place, dilations, strict=True)]
        rests = (reach - shift for reach, shift in zip(reaches, shifts, strict=True))
        own = reshape(context, slice_axis(context, columns, 1, number, 1), (images, *blocks))
        moved = context.add(
            "pad", own, zero, before=(0, *shifts), after=(0, *rests), mode="constant"
        )
        total = context.add("add", total, moved) if number else moved
    return total


def _one_hot_weights(context: OpContext, taps: Dim, block: Sequence[Dim]) -> int:
    """[taps, 1, *block]: weights that put the element of each tap where it belongs in the block."""
    places = [range_mask(context, (taps, taps), axis) for axis in (0, 1)]
    one_hot = cast(context, context.add("equal", *places), context.dtype_of(context.operand(0)))
    return reshape(context, one_hot, (taps, 1, *block))


OP = OnnxOp("Col2Im", _translate, 18)
