"""ONNX STFT: Fourier transforms of overlapping frames.

In: a signal [B, length, 1 or 2], a step, perhaps a window and a frame length. Out: [B, frames,
bins, 2]. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import read_size, require_dim, reshape, sizes_of
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.fourier import transform
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, window = context.operand(0), context.optional(2)
    if len(sizes_of(context, x, 2, 3)) == 2:
        x = reshape(context, x, (*context.shape_of(x), 1))
    step = read_size(context, context.operand(1))
    require_dim(context, 1 - dim_min(step, 1), "a frame_step above 0", step)
    given = context.optional(3)
    if given is None and window is None:
        raise OpTypeError("a window or a frame_length", "none")
    size: Dim = sizes_of(context, window, 1)[0] if window is not None else 0
    if given is not None:
        size = read_size(context, given)
    batch, length, parts = context.shape_of(x)
    frames = dim_floordiv(length - size, step) + 1
    starts = context.add(
        "mul",
        context.add("iota", dtype="i64", length=frames),
        reshape(context, context.integers([step]), ()),
    )
    offsets = context.add("iota", dtype="i64", length=size)
    places = context.add("add", reshape(context, starts, (frames, 1)), offsets)
    cut = context.add("gather", x, places, axis=1)
    if window is not None:
        cut = context.add("mul", cut, reshape(context, window, (size, 1)))
    assert context.shape_of(cut)[0] == batch
    assert context.shape_of(cut)[3] == parts
    return (
        transform(
            context,
            cut,
            2,
            None,
            inverse=False,
            onesided=bool(context.int_attribute("onesided", 1)),
        ),
    )


OP = OnnxOp("STFT", _translate, 17)
