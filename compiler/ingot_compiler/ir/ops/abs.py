"""``abs``: absolute value; the least signed integer stays itself (ONNX Abs-13).

In: a number tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import NUMBERS, unary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "abs",
    unary(NUMBERS),
    directly(np.absolute),
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT,
)
