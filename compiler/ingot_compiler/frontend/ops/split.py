"""ONNX Split: parts along an axis; their sizes are an attribute before opset 13, then an operand.

In: a tensor, perhaps sizes (known or computed at run time). Out: one core ``slice`` per part. Not
done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import reshape, slice_axis
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, count = context.operand(0), len(context.wanted)
    axis = context.axis_attribute(0, context.rank_of(x))
    sizes = _sizes(context, context.shape_of(x)[axis], count)
    if len(sizes) != count:
        raise OpTypeError(f"sizes of {count} parts", len(sizes))
    total = _sum(sizes)
    if (
        isinstance(total, int)
        and isinstance(context.shape_of(x)[axis], int)
        and total != context.shape_of(x)[axis]
    ):
        raise OpTypeError(message("sizes that add up to ", context.shape_of(x)[axis]), list(sizes))
    # Sizes that only a run can compare: the reshape checks them, so that no part lies outside of x.
    shape = list(context.shape_of(x))
    shape[axis] = total
    x = reshape(context, x, shape)
    results: list[int] = []
    start: Dim = 0
    for size in sizes:
        results.append(slice_axis(context, x, axis, start, size))
        start = dim_add(start, size)
    return results


def _sum(sizes: Sequence[Dim]) -> Dim:
    total: Dim = 0
    for size in sizes:
        total = dim_add(total, size)
    return total


def _sizes(context: OpContext, size: Dim, count: int) -> tuple[Dim, ...]:
    operand = context.optional(1) if context.opset >= 13 else None
    if operand is not None:
        return context.dims(operand) or context.read_dims(operand)
    given = context.ints_attribute("split") if context.opset < 13 else None
    if given is not None:
        return given
    if context.int_attribute("num_outputs", count) != count:
        raise OpTypeError(
            f"num_outputs {count}, as many as results", context.int_attribute("num_outputs", count)
        )
    # Equal parts; from opset 18 on the last one may be smaller.
    part = dim_floordiv(dim_add(size, count - 1), count)
    if context.opset < 18 and isinstance(size, int) and size % count:
        raise OpTypeError(f"a size that {count} divides", size)
    return (*[part] * (count - 1), dim_add(size, dim_mul(part, 1 - count)))


OP = OnnxOp("Split", _translate)
