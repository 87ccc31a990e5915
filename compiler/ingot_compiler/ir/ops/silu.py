"""``silu``: x * sigmoid(x), also called swish (ONNX Swish-24 with alpha 1).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import in_f64, sigmoid
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS


def _silu(x: Array) -> Array:
    result: Array = x * sigmoid(x)
    return result


OP = CoreOp("silu", unary(FLOATS), in_f64(_silu), traits=Trait.ELEMENTWISE | Trait.DENSE)
