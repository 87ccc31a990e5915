"""ONNX EyeLike: a matrix with ones on the diagonal ``k``.

In: a matrix, for its shape and element type. Out: core ``iota``, ``equal``, ``cast``. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import binary_scalar, cast, range_mask
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.onnx_types import dtype_of
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    dtype = dtype_of(context.int_attribute("dtype", 0)) or context.dtype_of(x)
    shape = context.shape_of(x)
    if len(shape) != 2:
        raise OpTypeError("rank 2", context.type_of(x))
    diagonal = binary_scalar(
        context, "add", range_mask(context, shape, 0), context.int_attribute("k", 0)
    )
    return (cast(context, context.add("equal", diagonal, range_mask(context, shape, 1)), dtype),)


OP = OnnxOp("EyeLike", _translate)
