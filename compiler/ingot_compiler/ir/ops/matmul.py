"""``matmul(a, b)``: matrix products over the last two axes (ONNX MatMul-13, numpy's rule).

In: a[.., M, K] and b[.., K, N] of one element type, ranks >= 2; leading axes broadcast. Out: [..,
M, N]; integers wrap. Not done here: vectors (the frontend reshapes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.op import CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import (
    NUMBERS,
    matrix_product,
    require_dtype,
    require_operands,
    require_same_dtype,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 2)
    require_same_dtype(types)
    require_dtype(types[0], NUMBERS)
    return matrix_product(types, types[0].dtype)


OP = CoreOp("matmul", _infer, in_f64(np.matmul), traits=Trait.DENSE)
