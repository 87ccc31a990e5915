"""``logical_not``: not x (ONNX Not-1).

In: a bool tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import BOOLS, unary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "logical_not", unary(BOOLS), directly(np.logical_not), traits=Trait.ELEMENTWISE | Trait.EXACT
)
