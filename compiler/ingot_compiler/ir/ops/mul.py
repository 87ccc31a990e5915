"""``mul``: a * b; integers wrap (ONNX Mul-14).

In: two tensors of one element type (numbers). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import NUMBERS, binary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "mul",
    binary(NUMBERS),
    directly(np.multiply),
    traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ALL | Trait.COMMUTATIVE | Trait.EXACT,
)
