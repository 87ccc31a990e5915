"""ONNX Col2Im: overlapping blocks added into an image.

In: columns [N, C * block elements, blocks]; image and block shape. Out: core ``conv_transpose``
with weights that are 0 or 1. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import cast, product, range_mask, reshape, sizes_of
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.windows import span_of, spatial
from ingot_compiler.ir.dims import Dim, dim_floordiv
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    image, block = context.read_dims(context.operand(1)), context.read_dims(context.operand(2))
    count, taps = len(block), product(block)
    if len(image) != count or taps == 0:
        raise OpTypeError(
            "image_shape and block_shape of one length, no block size 0", f"{image} and {block}"
        )
    strides, dilations = (
        spatial(context, "strides", count, 1),
        spatial(context, "dilations", count, 1),
    )
    pads = context.ints_attribute("pads", [0] * 2 * count) or (0,) * (2 * count)
    if len(pads) != 2 * count or min(strides, default=1) < 1:
        raise OpTypeError(
            f"{2 * count} pads and strides above 0", f"pads {pads}, strides {strides}"
        )
    shape = sizes_of(context, x, 3)
    channels = dim_floordiv(shape[1], taps)
    blocks: list[Dim] = []
    rests: list[Dim] = []
    for axis, size in enumerate(image):
        room = size + pads[axis] + pads[count + axis] - span_of(block[axis], dilations[axis])
        blocks.append(dim_floordiv(room, strides[axis]) + 1)
        rests.append(room - (blocks[-1] - 1) * strides[axis])
    # Every channel is an image of its own, whose elements of a block are the channels.
    columns = reshape(context, x, (shape[0] * channels, taps, *blocks))
    one_hot = context.add(
        "equal", range_mask(context, (taps, taps), 0), range_mask(context, (taps, taps), 1)
    )
    weights = reshape(context, cast(context, one_hot, context.dtype_of(x)), (taps, 1, *block))
    joined = context.add(
        "conv_transpose", columns, weights, strides=strides, dilations=dilations, pads_before=pads[:count],
        pads_after=pads[count:], groups=1, output_padding=tuple(rests),
    )  # fmt: skip
    return (reshape(context, joined, (shape[0], channels, *image)),)


OP = OnnxOp("Col2Im", _translate, 18)
