"""``bitwise_or``: a or b on every bit (ONNX BitwiseOr-18).

In: two tensors of one element type (integers). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import INTEGERS, binary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "bitwise_or",
    binary(INTEGERS),
    directly(np.bitwise_or),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
)
