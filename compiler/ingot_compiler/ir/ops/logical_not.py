"""``logical_not``: not x (ONNX Not-1).

In: a bool tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.reference_rules import directly
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.typing_rules import BOOLS, unary

OP = CoreOp(
    "logical_not", unary(BOOLS), directly(np.logical_not), traits=Trait.ELEMENTWISE | Trait.EXACT
)
