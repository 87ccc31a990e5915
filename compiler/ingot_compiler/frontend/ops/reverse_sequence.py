"""ONNX ReverseSequence: the first elements of every row backwards, as many as its length says.

In: a tensor and i64 lengths. Out: core ``gather_elements``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, range_mask, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_lengths
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, lengths = context.operand(0), context.operand(1)
    shape = context.shape_of(x)
    batch, time = context.int_attribute("batch_axis", 1), context.int_attribute("time_axis", 0)
    if {batch, time} != {0, 1} or len(shape) < 2:
        raise OpTypeError("batch_axis and time_axis 0 and 1, in any order", f"{batch} and {time}")
    ones: list[Dim] = [1] * len(shape)
    ones[batch] = shape[batch]
    length = reshape(context, checked_lengths(context, lengths, shape[time]), ones)
    step = range_mask(context, shape, time)
    last = context.add("sub", length, context.scalar("i64", 1))
    mirrored = context.add(
        "select", context.add("less", step, length), context.add("sub", last, step), step
    )
    return (context.add("gather_elements", x, broadcast_to(context, mirrored, shape), axis=time),)


OP = OnnxOp("ReverseSequence", _translate)
