"""``acos``: arc cosine in radians (ONNX Acos-22).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS

OP = CoreOp("acos", unary(FLOATS), in_f64(np.arccos), traits=Trait.ELEMENTWISE)
