"""ONNX Runtime LinearAttentionGate: how far the states of LinearAttention decay and change.

In: a [B, T, H], a bias [H] and a factor [H], perhaps b [B, T, H]. Out: ``factor * softplus(a +
bias)`` and the sigmoid of b, computed in f32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.imported import ABSENT


def _translate(context: OpContext) -> Sequence[int]:
    a, bias, factor = (cast(context, context.operand(position), "f32") for position in range(3))
    dtype, b = context.dtype_of(context.operand(0)), context.optional(3)
    grown = context.add("softplus", context.add("add", a, bias))
    decay = cast(context, context.add("mul", factor, grown), dtype)
    if b is None:
        return decay, ABSENT
    return decay, cast(context, context.add("sigmoid", cast(context, b, "f32")), dtype)


OP = OnnxOp(
    "LinearAttentionGate",
    _translate,
    signature="a dt_bias decay_scale b? -> decay beta?",
)
