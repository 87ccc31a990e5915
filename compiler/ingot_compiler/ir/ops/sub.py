"""``sub``: a - b; integers wrap (ONNX Sub-14).

In: two tensors of one element type (numbers). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.reference_rules import directly
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.typing_rules import NUMBERS, binary

OP = CoreOp(
    "sub",
    binary(NUMBERS),
    directly(np.subtract),
    traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ANY | Trait.EXACT,
)
