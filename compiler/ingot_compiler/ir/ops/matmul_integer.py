"""``matmul_integer(a, b)``: matrix products of narrow integers, summed in i32 (ONNX
MatMulInteger-10, zero points taken off).

In: a[.., M, K] and b[.., K, N] of 8- or 16-bit integers, each of its own type, ranks >= 2; leading
axes broadcast. Out: i32 [.., M, N]; sums wrap. Not done here: zero points (the frontend subtracts
them), vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.ir.typing_rules import matrix_product, require_dtype, require_operands

NARROW: frozenset[DType] = frozenset(("i8", "u8", "i16"))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 2)
    for tensor in types:
        require_dtype(tensor, NARROW)
    return matrix_product(types, "i32")


def _reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    a, b = (operand.astype(np.int32) for operand in operands)
    return (np.asarray(np.matmul(a, b)),)


OP = CoreOp("matmul_integer", _infer, _reference)
