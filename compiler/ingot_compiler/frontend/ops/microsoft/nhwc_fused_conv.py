"""ONNX Runtime NhwcFusedConv: FusedConv of images whose channels come last.

In: x[N, H, W, C], weights [O, C / group, kernel..], perhaps a bias and a residual. Out: what
FusedConv gives, with its channels last. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last
from ingot_compiler.frontend.ops.microsoft.fused_conv import OP as FUSED_CONV
from ingot_compiler.frontend.ops.microsoft.fused_conv import finished, of_conv


def _translate(context: OpContext) -> Sequence[int]:
    x = to_first(context, context.operand(0))
    operands = [x, context.operand(1), context.optional(2)]
    result = to_last(context, results_of(context, "Conv", operands, of_conv(context))[0])
    return (finished(context, result),)


OP = OnnxOp("NhwcFusedConv", _translate, signature=FUSED_CONV.signature)
