"""ONNX Runtime SkipGroupNorm: GroupNorm of a sum, and the sum.

In: x, scale, shift, a residual [N, H, W, C], [N, 1, 1, C] or [N, C], perhaps a bias [C]. Out: core
``add``, ``group_norm``, ``silu``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.microsoft.group_norm import normalised


def _translate(context: OpContext) -> Sequence[int]:
    x, skip, bias = context.operand(0), context.operand(3), context.optional(4)
    spatial = range(2, context.rank_of(x))
    is_last = context.bool_attribute("channels_last", default=True)
    if context.rank_of(skip) == 2:
        skip = unsqueeze(context, skip, range(1, context.rank_of(x) - 1) if is_last else spatial)
    total = context.add("add", x, skip)
    if bias is not None:
        column = bias if is_last else unsqueeze(context, bias, range(1, len(spatial) + 1))
        total = context.add("add", total, column)
    return normalised(context, total), total


OP = OnnxOp(
    "SkipGroupNorm",
    _translate,
    signature="X gamma beta skip bias? -> Y S?; activation!:int channels_last:int epsilon:float groups!:int",
)
