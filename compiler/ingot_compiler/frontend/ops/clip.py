"""ONNX Clip: x limited to [min, max]; the limits are attributes before opset 11, then operands.

In: a tensor, perhaps limits. Out: core ``max``, ``min`` (where min > max, max wins). Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_names import OpName

_LIMITS: tuple[tuple[str, OpName], ...] = (("min", "max"), ("max", "min"))


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    for position, (name, op) in enumerate(_LIMITS, 1):
        limit = context.optional(position)
        if context.opset < 11 and name in context.attributes:
            limit = context.scalar(context.dtype_of(x), context.float_attribute(name, 0.0))
        if limit is not None:
            if context.type_of(limit).element_count == 1:
                limit = reshape(context, limit, ())
            x = context.add(op, x, limit)
    return (x,)


OP = OnnxOp("Clip", _translate)
