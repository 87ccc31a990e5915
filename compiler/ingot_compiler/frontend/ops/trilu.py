"""ONNX Trilu: the upper or lower triangle of matrices, 0 elsewhere.

In: x[.., R, C], perhaps the diagonal k. Out: core ``iota``, ``less_equal``, ``select``. Not done
here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import range_mask, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, k = context.operand(0), context.optional(1)
    shape = context.shape_of(x)
    if len(shape) < 2:
        raise OpTypeError("rank >= 2", context.type_of(x))
    rows, columns = range_mask(context, shape[-2:], 0), range_mask(context, shape[-2:], 1)
    if k is not None:
        rows = context.add("add", rows, reshape(context, k, ()))
    # Upper: column >= row + k; lower: column <= row + k.
    upper = context.bool_attribute("upper", default=True)
    kept = (
        context.add("less_equal", rows, columns)
        if upper
        else context.add("less_equal", columns, rows)
    )
    return (context.add("select", kept, x, context.scalar(context.dtype_of(x), 0)),)


OP = OnnxOp("Trilu", _translate)
