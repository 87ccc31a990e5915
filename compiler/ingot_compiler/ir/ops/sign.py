"""``sign``: -1, 0 or 1; NaN stays NaN (ONNX Sign-13).

In: a number tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import NUMBERS, unary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "sign",
    unary(NUMBERS),
    directly(np.sign),
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT | Trait.STEP,
)
