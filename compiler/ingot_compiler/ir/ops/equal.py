"""``equal``: a == b; NaN differs from everything (ONNX Equal-19).

In: two tensors of one element type (any element type). Out: bool, the broadcast shape. Not done
here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import ANY, binary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "equal",
    binary(ANY, "bool"),
    directly(np.equal),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT | Trait.STEP,
)
