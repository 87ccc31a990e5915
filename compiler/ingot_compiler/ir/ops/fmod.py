"""``fmod``: C remainder, with the sign of the dividend; an integer divisor of 0 gives 0 (ONNX
Mod-13, fmod=1).

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
    "fmod",
    binary(NUMBERS),
    directly(np.fmod),
    traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.DIVIDES | Trait.STEP,
)
