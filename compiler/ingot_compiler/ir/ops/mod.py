"""``mod``: remainder with the sign of the divisor; an integer divisor of 0 gives 0 (ONNX Mod-13,
fmod=0).

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
    "mod",
    binary(NUMBERS),
    directly(np.mod),
    traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.DIVIDES | Trait.STEP,
)
