"""ONNX Runtime GroupNorm: groups of channels of every sample normalised, perhaps a SiLU.

In: x with channels last (or first), scale, shift. Out: core ``group_norm``, ``silu``. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last
from ingot_compiler.ir.op_type_error import OpTypeError


def normalised(context: OpContext, x: int) -> int:
    """X after the node's normalisation and activation."""
    groups = context.int_attribute("groups", 1)
    if groups < 1:
        raise OpTypeError("groups >= 1", groups)
    is_last = context.bool_attribute("channels_last", default=True)
    first = to_first(context, x) if is_last else x
    parameters = [cast(context, context.operand(at), context.dtype_of(x)) for at in (1, 2)]
    epsilon = context.float_attribute("epsilon", 1e-5)
    result = context.add("group_norm", first, *parameters, groups=groups, epsilon=epsilon)
    if context.int_attribute("activation", 0):
        result = context.add("silu", result)
    return to_last(context, result) if is_last else result


def _translate(context: OpContext) -> Sequence[int]:
    return (normalised(context, context.operand(0)),)


OP = OnnxOp(
    "GroupNorm",
    _translate,
    signature="X gamma beta -> Y; activation!:int channels_last:int epsilon:float groups!:int",
)
