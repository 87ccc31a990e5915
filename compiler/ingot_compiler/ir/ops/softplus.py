"""``softplus``: ln(1 + e^x) (ONNX Softplus-22).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0.0)


OP = CoreOp("softplus", unary(FLOATS), in_f64(_softplus), traits=Trait.ELEMENTWISE | Trait.DENSE)
