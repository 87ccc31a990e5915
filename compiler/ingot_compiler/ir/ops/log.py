"""``log``: natural logarithm; NaN below 0 (ONNX Log-13).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS

OP = CoreOp("log", unary(FLOATS), in_f64(np.log), traits=Trait.ELEMENTWISE)
