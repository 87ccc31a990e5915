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
from ingot_compiler.ir.rules.typing_rules import matrix_product, require_dtype, require_operands
from ingot_compiler.ir.types import DType, TensorType

# So many products of 16 bits have an exact sum in f64, whose products numpy leaves to BLAS.
_STEP = 1 << 22
NARROW: frozenset[DType] = frozenset(("i8", "u8", "i16"))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 2)
    for tensor in types:
        require_dtype(tensor, NARROW)
    return matrix_product(types, "i32")


def _reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    a, b = (operand.astype(np.float64) for operand in operands)
    steps = range(0, max(a.shape[-1], 1), _STEP)
    parts = (a[..., at : at + _STEP] @ b[..., at : at + _STEP, :] for at in steps)
    total = sum(part.astype(np.int64) for part in parts)
    return (np.asarray(total).astype(np.int32),)


OP = CoreOp("matmul_integer", _infer, _reference)
