"""``div``: a / b; integers truncate towards 0, a divisor of 0 gives 0, the least integer over -1
wraps (ONNX Div-14).

In: two tensors of one element type (numbers). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import NUMBERS, binary
from ingot_compiler.ir.traits import Trait


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient, rest = np.floor_divide(a, b), np.fmod(a, b)
    # floor and truncation differ by one where the division is inexact and the signs differ.
    return np.asarray(quotient + ((rest != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


OP = CoreOp(
    "div",
    binary(NUMBERS),
    directly(_divide),
    traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ALL | Trait.EXACT | Trait.DIVIDES,
)
