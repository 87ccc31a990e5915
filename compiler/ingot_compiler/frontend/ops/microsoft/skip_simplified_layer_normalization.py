"""ONNX Runtime SkipSimplifiedLayerNormalization: the RMS norm of a sum, and the sum.

In: x, a residual, scale, perhaps a bias. Out: core ``add``, ``rms_norm``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.frontend.ops.microsoft.simplified_layer_normalization import simplified
from ingot_compiler.frontend.ops.microsoft.skip_layer_normalization import skipped


def _translate(context: OpContext) -> Sequence[int]:
    if context.wants(1):
        raise Unsupported("a mean, which this normalisation has not")
    total = skipped(context, context.optional(3))
    result, inverse = simplified(context, total, context.operand(2), wants_inverse=context.wants(2))
    return result, ABSENT, inverse, total


OP = OnnxOp(
    "SkipSimplifiedLayerNormalization",
    _translate,
    signature="input skip gamma bias? -> output mean? inv_std_var? "
    "input_skip_bias_sum?; epsilon:float",
)
