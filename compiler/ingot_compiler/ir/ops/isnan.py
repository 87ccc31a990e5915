"""``isnan``: whether x is NaN (ONNX IsNaN-20).

In: a float tensor. Out: bool, same shape. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS

OP = CoreOp(
    "isnan", unary(FLOATS, "bool"), directly(np.isnan), traits=Trait.ELEMENTWISE | Trait.EXACT
)
