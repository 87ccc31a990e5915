"""ONNX Runtime MatMulInteger16: the product of matrices of 16-bit integers, in i32.

In: a, b. Out: i32, modulo 2^32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    operands = (cast(context, context.operand(position), "i32") for position in (0, 1))
    return (as_onnx(context, "MatMul", *operands),)


OP = OnnxOp("MatMulInteger16", _translate, signature="A B -> Y")
