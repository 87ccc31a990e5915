"""ONNX Runtime FusedMatMulActivation: FusedMatMul and an activation.

In: two tensors. Out: what FusedMatMul gives, activated. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.activations import activated, by_name
from ingot_compiler.frontend.ops.microsoft.fused_mat_mul import fused_product


def _translate(context: OpContext) -> Sequence[int]:
    return (activated(context, fused_product(context), *by_name(context)),)


OP = OnnxOp(
    "FusedMatMulActivation",
    _translate,
    signature="A B -> Y; activation!:string activation_alpha:float activation_axis:int activation_beta:float "
    "activation_gamma:float alpha:float transA:int transB:int transBatchA:int transBatchB:int",
)
