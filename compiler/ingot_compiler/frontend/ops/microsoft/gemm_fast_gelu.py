"""ONNX Runtime GemmFastGelu: the tanh approximation of Gelu of a product.

In: a tensor, a matrix, perhaps a bias. Out: core ``matmul``, ``add``, ``gelu``. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.mat_mul import product
from ingot_compiler.frontend.ops.microsoft.fast_gelu import fast_gelu


def _translate(context: OpContext) -> Sequence[int]:
    x = product(context, context.operand(0), context.operand(1))
    return (fast_gelu(context, x, context.optional(2)),)


OP = OnnxOp("GemmFastGelu", _translate, signature="X W bias? -> Y")
