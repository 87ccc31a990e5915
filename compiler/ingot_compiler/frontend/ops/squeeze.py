"""ONNX Squeeze: axes of size 1 removed; axes are an attribute before opset 13, then an operand.

In: a tensor, perhaps axes, known or computed at run time. Out: core ``reshape``. Not done here:
a size that may be 1, where no axes are given, and what follows from that (``two_ways``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_other_sizes
from ingot_compiler.frontend.build.run_time_shapes import axis_flags, kept_sizes
from ingot_compiler.frontend.model.onnx_node import counted_axes
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, shape = context.operand(0), context.shape_of(context.operand(0))
    operand = context.optional(1) if context.opset >= 13 else None
    axes = context.ints_attribute("axes") if operand is None else context.known_ints(operand)
    if operand is not None and axes is None:
        flags = axis_flags(context, operand, len(shape))
        return (reshape(context, x, kept_sizes(context, flags, shape, context.count_of(operand))),)
    if axes is None:
        require_other_sizes(context, enumerate(shape))
        counted = tuple(axis for axis, size in enumerate(shape) if size == 1)
    else:
        counted = counted_axes(axes, len(shape))
    wrong = [axis for axis in counted if isinstance(shape[axis], int) and shape[axis] != 1]
    if wrong:
        raise OpTypeError(f"size 1 at axis {wrong[0]}", context.type_of(x))
    return (reshape(context, x, [size for axis, size in enumerate(shape) if axis not in counted]),)


OP = OnnxOp("Squeeze", _translate)
