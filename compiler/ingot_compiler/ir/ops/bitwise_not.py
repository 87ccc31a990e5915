"""``bitwise_not``: every bit flipped (ONNX BitwiseNot-18).

In: an integer tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import INTEGERS, unary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "bitwise_not", unary(INTEGERS), directly(np.invert), traits=Trait.ELEMENTWISE | Trait.EXACT
)
