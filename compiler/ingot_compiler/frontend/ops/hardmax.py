"""ONNX Hardmax: 1 at the first greatest element along an axis, 0 elsewhere.

In: a float tensor. Out: core ``argmax``, ``equal``, ``cast``. Not done here: the matrix form before
opset 13 (``softmaxes``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import cast, range_mask
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.softmaxes import row_op


def _rows(context: OpContext, x: int, axis: int) -> int:
    best = context.add("argmax", x, axis=axis, select_last=False, keepdims=True)
    positions = range_mask(
        context,
        [size if axis == other else 1 for other, size in enumerate(context.shape_of(x))],
        axis,
    )
    return cast(context, context.add("equal", best, positions), context.dtype_of(x))


OP = OnnxOp("Hardmax", row_op(_rows))
