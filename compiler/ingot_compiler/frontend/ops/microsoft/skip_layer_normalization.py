"""ONNX Runtime SkipLayerNormalization: the layer norm of a sum, and the sum.

In: x, a residual that broadcasts to it, scale, perhaps shift and bias. Out: core ``add``,
``layer_norm``, moments where asked for. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.imported import ABSENT


def skipped(context: OpContext, bias: int | None) -> int:
    """X + skip + bias."""
    total = context.add("add", context.operand(0), context.operand(1))
    return total if bias is None else context.add("add", total, bias)


def _translate(context: OpContext) -> Sequence[int]:
    total = skipped(context, context.optional(4))
    epsilon = context.float_attribute("epsilon", 1e-12)
    normal = results_of(
        context,
        "LayerNormalization",
        [total, context.operand(2), context.optional(3)],
        {"axis": -1, "epsilon": epsilon},
        wanted=(True, context.wants(1), context.wants(2)),
    )
    moments = normal[1:] or (ABSENT, ABSENT)
    return normal[0], *moments, total


OP = OnnxOp(
    "SkipLayerNormalization",
    _translate,
    signature="input skip gamma beta? bias? -> output mean? inv_std_var? "
    "input_skip_bias_sum?; epsilon:float",
)
