"""ONNX Runtime TransposeMatMul: FusedMatMul under its older name.

In: two tensors. Out: what FusedMatMul gives. Not done here: the product (``fused_mat_mul``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.microsoft.fused_mat_mul import fused_product


def _translate(context: OpContext) -> Sequence[int]:
    return (fused_product(context),)


OP = OnnxOp("TransposeMatMul", _translate, signature="A B -> Y; alpha:float transA:int transB:int")
