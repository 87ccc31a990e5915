"""``logical_or``: a or b (ONNX Or-7).

In: two tensors of one element type (bools). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.reference_rules import directly
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.typing_rules import BOOLS, binary

OP = CoreOp(
    "logical_or",
    binary(BOOLS),
    directly(np.logical_or),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
)
