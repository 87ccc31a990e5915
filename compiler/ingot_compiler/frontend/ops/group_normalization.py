"""ONNX GroupNormalization: groups of channels of every sample; scale and bias per group in opset
18, per channel from 21.

In: x[N, C, ..], scale, bias. Out: core ``group_norm``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, reshape, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, groups = context.operand(0), context.int_attribute("num_groups", 1)
    channels = context.shape_of(x)[1] if context.rank_of(x) > 1 else 0
    if groups < 1:
        raise OpTypeError("num_groups >= 1", groups)
    parameters = [context.operand(1), context.operand(2)]
    if context.opset < 21:
        size = dim_floordiv(channels, groups)
        wide = [
            broadcast_to(context, unsqueeze(context, value, (1,)), (groups, size))
            for value in parameters
        ]
        parameters = [reshape(context, value, (channels,)) for value in wide]
    epsilon = context.float_attribute("epsilon", 1e-5)
    return (context.add("group_norm", x, *parameters, groups=groups, epsilon=epsilon),)


OP = OnnxOp("GroupNormalization", _translate)
