"""ONNX Col2Im: overlapping blocks added into an image.

In: columns [N, C * block elements, blocks]; image and block shape. Out: sums of images; core
``conv_transpose`` with weights that are 0 or 1 where the block is open, or very many overlap. Not
done here: the sums (``fold_blocks``), types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, range_mask, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.families.images.fold_blocks import SUMMANDS_MAX, FoldAxis, fold_blocks
from ingot_compiler.frontend.families.images.windows import span_of, strides_and_dilations
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_product
from ingot_compiler.ir.op_type_error import OpTypeError


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
    paths = [size + low + high - span for size, low, high, span in entries]
    blocks = [dim_floordiv(*entry) + 1 for entry in zip(paths, strides, strict=True)]
    counted = zip(paths, blocks, strides, strict=True)
    rests = tuple(path - (number - 1) * stride for path, number, stride in counted)
    batch, rows, _ = sizes_of(context, x, 3)
    channels = dim_floordiv(rows, taps)
    # Every channel is an image of its own, whose elements of a block are the channels.
    images = batch * channels
    axes = [
        FoldAxis(*entry)
        for entry in zip(block, strides, dilations, before, after, image, strict=True)
        if isinstance(entry[0], int)
    ]
    if len(axes) == count and all(len(axis.parts) <= SUMMANDS_MAX for axis in axes):
        columns = reshape(context, x, (images, *block, *blocks))
        joined = fold_blocks(context, columns, axes)
    else:
        columns = reshape(context, x, (images, taps, *blocks))
        joined = context.add(
            "conv_transpose", columns, _one_hot_weights(context, taps, block), strides=strides,
            dilations=dilations, pads_before=before, pads_after=after, groups=1,
            output_padding=rests,
        )  # fmt: skip
    return (reshape(context, joined, (batch, channels, *image)),)


def _one_hot_weights(context: OpContext, taps: Dim, block: Sequence[Dim]) -> int:
    """[taps, 1, *block]: weights that put the element of each tap where it belongs in the block."""
    places = [range_mask(context, (taps, taps), axis) for axis in (0, 1)]
    one_hot = cast(context, context.add("equal", *places), context.dtype_of(context.operand(0)))
    return reshape(context, one_hot, (taps, 1, *block))


OPS = (OnnxOp("Col2Im", _translate, 18),)
