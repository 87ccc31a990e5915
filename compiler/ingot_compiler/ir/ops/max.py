"""``max``: the larger; NaN if either is NaN (ONNX Max-13).

In: two tensors of one element type (any element type). Out: that type, the broadcast shape. Not
done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import ANY, binary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "max",
    binary(ANY),
    directly(np.maximum),
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.COMMUTATIVE | Trait.EXACT,
)
