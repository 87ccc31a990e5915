"""ONNX EyeLike: a matrix with ones on the diagonal ``k``.

In: a matrix, for its shape and element type. Out: core ``iota``, ``equal``, ``select``. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import binary_scalar, cast, range_mask
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.onnx_types import dtype_of
from ingot_compiler.ir.op_type_error import OpTypeError

_SHORT = 1 << 30  # sums of two such numbers have 32 bits


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    dtype = dtype_of(context.int_attribute("dtype", 0)) or context.dtype_of(x)
    shape = context.shape_of(x)
    if len(shape) != 2:
        raise OpTypeError("rank 2", context.type_of(x))
    k = context.int_attribute("k", 0)
    is_short = all(isinstance(size, int) and size < _SHORT for size in (*shape, abs(k)))
    places = (range_mask(context, shape, axis) for axis in (0, 1))
    row, column = (cast(context, place, "i32" if is_short else "i64") for place in places)
    diagonal = binary_scalar(context, "add", row, k)
    is_one = context.add("equal", diagonal, column)
    return (context.add("select", is_one, context.scalar(dtype, 1), context.scalar(dtype, 0)),)


OP = OnnxOp("EyeLike", _translate)
