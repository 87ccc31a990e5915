"""ONNX Runtime QAttention: attention whose projections are products of quantised operands.

In: 8-bit x[B, S, C] and weights [C, 3 * hidden], their bias, scales, perhaps a mask, zero points
and a past. Out: what ``Attention`` gives of what they stand for. Not done here: attention itself
(``attention``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.weights.q_linear import floats
from ingot_compiler.frontend.ops.microsoft.attention import OP as ATTENTION


def _translate(context: OpContext) -> Sequence[int]:
    x = floats(context, context.operand(0), context.operand(3), context.optional(6))
    w = floats(context, context.operand(1), context.operand(4), context.optional(7), axis=1)
    operands = (x, w, context.operand(2), context.optional(5), context.optional(8))
    return ATTENTION.translate(replace(context, operands=operands))


OP = OnnxOp(
    "QAttention",
    _translate,
    signature="input weight bias input_scale weight_scale mask_index? input_zero_point? "
    "weight_zero_point? past? -> output present?; do_rotary:int mask_filter_value:float "
    "num_heads!:int past_present_share_buffer:int scale:float unidirectional:int",
)
