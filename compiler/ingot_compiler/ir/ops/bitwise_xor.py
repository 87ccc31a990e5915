"""``bitwise_xor``: a xor b on every bit (ONNX BitwiseXor-18).

In: two tensors of one element type (integers). Out: that type, the broadcast shape. Not done here:
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import INTEGERS, binary
from ingot_compiler.ir.traits import Trait

OP = CoreOp(
    "bitwise_xor",
    binary(INTEGERS),
    directly(np.bitwise_xor),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
)
