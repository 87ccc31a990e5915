"""``shift_right``: a / 2^b rounded to -infinity; 0 or -1 for b >= the width (ONNX BitShift-11).

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
    "shift_right",
    binary(INTEGERS),
    directly(np.right_shift),
    traits=Trait.ELEMENTWISE | Trait.EXACT,
)
