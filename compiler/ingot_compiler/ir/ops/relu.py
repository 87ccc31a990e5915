"""``relu``: max(x, 0); NaN stays NaN (ONNX Relu-14).

In: a number tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import NUMBERS, unary
from ingot_compiler.ir.traits import Trait


def _relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, x.dtype.type(0)))


OP = CoreOp(
    "relu", unary(NUMBERS), directly(_relu), traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT
)
