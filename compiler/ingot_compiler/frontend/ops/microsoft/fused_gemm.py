"""ONNX Runtime FusedGemm: ONNX's Gemm and an activation.

In: two matrices, perhaps C. Out: what Gemm gives, activated. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.activations import activated, by_name


def _translate(context: OpContext) -> Sequence[int]:
    operands = [context.operand(0), context.operand(1), context.optional(2)]
    kept = ("alpha", "beta", "transA", "transB")
    own = {name: value for name, value in context.attributes.items() if name in kept}
    (result,) = results_of(context, "Gemm", operands, own)
    return (activated(context, result, *by_name(context)),)


OP = OnnxOp(
    "FusedGemm",
    _translate,
    signature="A B C? -> Y; activation:string activation_alpha:float activation_beta:float "
    "activation_gamma:float alpha:float beta:float transA:int transB:int",
)
