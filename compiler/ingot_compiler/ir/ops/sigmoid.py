"""``sigmoid``: 1 / (1 + e^-x) (ONNX Sigmoid-13).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import in_f64, sigmoid
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS

OP = CoreOp("sigmoid", unary(FLOATS), in_f64(sigmoid), traits=Trait.ELEMENTWISE | Trait.DENSE)
