"""ONNX Split: parts along an axis; their sizes are an attribute before opset 13, then an operand.

In: a tensor, perhaps sizes (known or computed at run time). Out: one core ``slice`` per part. Not
done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, count = context.operand(0), len(context.wanted)
    axis = context.axis_attribute(0, context.rank_of(x))
    shape = context.shape_of(x)
    sizes = _sizes(context, shape[axis], count)
    if len(sizes) != count:
        raise OpTypeError(f"sizes of {count} parts", len(sizes))
    starts: list[Dim] = [0]
    for size in sizes:
        starts.append(dim_add(starts[-1], size))
    total = starts.pop()
    if isinstance(total, int) and isinstance(shape[axis], int) and total != shape[axis]:
        raise OpTypeError(message("sizes that add up to ", shape[axis]), list(sizes))
    # Sizes that only a run can compare: the reshape checks them, so that no part lies outside of x.
    x = reshape(context, x, (*shape[:axis], total, *shape[axis + 1 :]))
    pairs = zip(starts, sizes, strict=True)
    return [slice_axis(context, x, axis, start, size) for start, size in pairs]


def _sizes(context: OpContext, size: Dim, count: int) -> tuple[Dim, ...]:
    operand = context.optional(1) if context.opset >= 13 else None
    if operand is not None:
        return context.dims(operand) or context.read_dims(operand)
    given = context.ints_attribute("split") if context.opset < 13 else None
    if given is not None:
        return given
    stated = context.int_attribute("num_outputs", count)
    if stated != count:
        raise OpTypeError(f"num_outputs {count}, as many as results", stated)
    # Equal parts; from opset 18 on the last one may be smaller.
    part = dim_floordiv(dim_add(size, count - 1), count)
    if context.opset < 18 and isinstance(size, int) and size % count:
        raise OpTypeError(f"a size that {count} divides", size)
    return (*[part] * (count - 1), dim_add(size, dim_mul(part, 1 - count)))


OPS = (OnnxOp("Split", _translate),)
