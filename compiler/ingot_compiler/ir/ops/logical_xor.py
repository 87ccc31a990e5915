"""``logical_xor``: a xor b (ONNX Xor-7).

In: two tensors of one element type (bools). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import BOOLS, binary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "logical_xor",
    binary(BOOLS),
    directly(np.logical_xor),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
)
