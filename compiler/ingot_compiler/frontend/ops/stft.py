"""ONNX STFT: Fourier transforms of overlapping frames.

In: a signal [B, length, 1 or 2], a step, perhaps a window and a frame length. Out: [B, frames,
bins, 2]. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import iota, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import read_size, require_dim, sizes_of
from ingot_compiler.frontend.families.fourier.fourier import transform
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, window = context.operand(0), context.optional(2)
    if len(sizes_of(context, x, 2, 3)) == 2:
        x = reshape(context, x, (*context.shape_of(x), 1))
    step = read_size(context, context.operand(1))
    require_dim(context, 1 - dim_min(step, 1), "a frame_step above 0", step)
    size = _frame_size(context)
    frames = context.add(
        "gather", x, _frame_places(context, context.shape_of(x)[1], size, step), axis=1
    )
    if window is not None:
        frames = context.add("mul", frames, reshape(context, window, (size, 1)))
    onesided = context.bool_attribute("onesided", default=True)
    return (transform(context, frames, 2, None, inverse=False, onesided=onesided),)


def _frame_size(context: OpContext) -> Dim:
    """The number of samples of one frame."""
    window, given = context.optional(2), context.optional(3)
    own = None if window is None else sizes_of(context, window, 1)[0]
    size = own if given is None else read_size(context, given)
    if size is None:
        raise OpTypeError("a window or a frame_length", "none")
    return size


def _frame_places(context: OpContext, length: Dim, size: Dim, step: Dim) -> int:
    """i64[frames, size]: where the samples of each frame lie in the signal."""
    count = dim_floordiv(length - size, step) + 1
    starts = context.add("mul", iota(context, count), size_scalar(context, step))
    offsets = iota(context, size)
    return context.add("add", reshape(context, starts, (count, 1)), offsets)


OPS = (OnnxOp("STFT", _translate, 17),)
