"""``matmul(a, b)``: matrix products over the last two axes (ONNX MatMul-13, numpy's rule).

In: a[.., M, K] and b[.., K, N] of one element type, ranks >= 2; leading axes broadcast. Out: [.., M, N]; integers wrap.
Not done here: vectors (the frontend reshapes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.claim_rules import broadcast_together, equal, sizes_of
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.reference_rules import in_f64
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import NUMBERS, require_dtype, require_operands, require_same_dtype


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 2)
    require_same_dtype(types)
    a, b = types
    require_dtype(a, NUMBERS)
    require(a.rank >= 2 and b.rank >= 2, "ranks >= 2", message(a, " and ", b))
    inner = equal("inner sizes", sizes_of(types, 0)[-1], sizes_of(types, 1)[-2])
    batch = broadcast_together((a.shape[:-2], b.shape[:-2]))
    return Inferred((TensorType(a.dtype, (*batch.target, a.shape[-2], b.shape[-1])),), (inner, batch))


OP = CoreOp("matmul", _infer, in_f64(np.matmul))
