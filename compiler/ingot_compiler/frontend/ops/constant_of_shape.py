"""ONNX ConstantOfShape: a tensor of one value.

In: a shape that is known or computed at run time. Out: core ``literal``, ``broadcast_to``. Not done
here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, full, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    shape = context.read_dims(context.operand(0))
    wrong = [dim for dim in shape if isinstance(dim, int) and dim < 0]
    if wrong:
        raise OpTypeError("sizes >= 0", wrong[0])
    value = context.attributes.get("value")
    if isinstance(value, ConstantSource):
        return (broadcast_to(context, reshape(context, context.constant(value), ()), shape),)
    return (full(context, "f32", 0, shape),)


OP = OnnxOp("ConstantOfShape", _translate)
