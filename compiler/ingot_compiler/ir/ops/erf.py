"""``erf``: the error function (ONNX Erf-13).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import erf, in_f64
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS

OP = CoreOp("erf", unary(FLOATS), in_f64(erf), traits=Trait.ELEMENTWISE)
