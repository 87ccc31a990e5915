"""``pow``: a to the power of b; integers wrap, a negative integer exponent gives the truncated
reciprocal, 0 for base 0 (ONNX Pow-15).

In: two tensors of one element type (numbers). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import NUMBERS, binary
from ingot_compiler.ir.traits import Trait


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind in "fu":
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    reciprocal = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
    return np.where(b >= 0, positive, reciprocal.astype(a.dtype))


OP = CoreOp("pow", binary(NUMBERS), in_f64(_power), traits=Trait.ELEMENTWISE)
