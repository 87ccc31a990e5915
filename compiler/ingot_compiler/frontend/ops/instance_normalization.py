"""ONNX InstanceNormalization: every channel of every sample by itself.

In: x[N, C, spatial..], scale and bias [C]. Out: core ``group_norm`` with one channel per group; for
a number of channels that is known at run time only, ``reduce`` and elementwise ops. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.norms import standardise
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, scale, bias = (context.operand(position) for position in range(3))
    epsilon, shape = context.float_attribute("epsilon", 1e-5), context.shape_of(x)
    if len(shape) < 3:
        raise OpTypeError("x[N, C, spatial..] of rank >= 3", context.type_of(x))
    if isinstance(shape[1], int):
        return (context.add("group_norm", x, scale, bias, groups=shape[1], epsilon=epsilon),)
    per_channel = (context.type_of(scale).element_count, *[1] * (len(shape) - 2))
    normal = standardise(context, x, tuple(range(2, len(shape))), epsilon)
    weighted = context.add("mul", normal, reshape(context, scale, per_channel))
    return (context.add("add", weighted, reshape(context, bias, per_channel)),)


OP = OnnxOp("InstanceNormalization", _translate, since=6)
